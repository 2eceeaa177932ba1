import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sendAsPage } from '../../../test/support/browser-session.ts'
import { startIssuer, type TestIssuer } from '../../../test/support/issuer.ts'
import { type Organization, type Service, startService } from '../../../test/support/service.ts'

let issuer: TestIssuer
let service: Service
let organization: Organization
beforeAll(async () => {
  issuer = await startIssuer()
  // Behind a proxy, each test can come from an address of its own.
  service = await startService({ ...issuer.environment, KITH_BEHIND_PROXY: '1' })
})
afterAll(async () => {
  await service?.stop()
  await issuer?.stop()
})
let addresses = 0
let from: Record<string, string>
beforeEach(async () => {
  organization = await service.organization()
  const claims = { org: organization.key, scope: 'people:read people:write changes:read', name: 'Ada Lovelace' }
  Object.assign(issuer, { claims, error: undefined, isForged: false })
  from = { 'X-Forwarded-For': `192.0.2.${++addresses}` }
})

const cookieOf = (response: Response) => response.headers.get('set-cookie')?.split(';')[0] ?? ''
const open = (url: string | URL, cookie = '') => fetch(url, { redirect: 'manual', headers: { ...from, cookie } })
const locationOf = (response: Response) => new URL(response.headers.get('location')!, response.url).href

/** Opens the start page and goes to the issuer. Returns the address that the issuer leads back to, and the cookie of the browser. */
async function goToIssuer(): Promise<{ callback: string; cookie: string }> {
  const started = await open(`${service.address}/console/oidc/start`)
  expect(started.status).toBe(302)
  return { callback: locationOf(await open(locationOf(started))), cookie: cookieOf(started) }
}

/** Signs in at the issuer. Returns the response to the callback. */
async function signIn(): Promise<Response> {
  const { callback, cookie } = await goToIssuer()
  return open(callback, cookie)
}

const problemOf = (response: Response) =>
  [response.status, locationOf(response).replace(service.address, ''), response.headers.get('set-cookie')] as const
const refusedWith = (problem: string) => [302, `/console/sign-in?error=${problem}`, null]
const countSessions = async () =>
  (await service.sql('select from sessions where organization_id = $1', [organization.id])).length

describe('a sign-in at the outside issuer', () => {
  it('is offered under its name', async () => {
    const { body } = await sendAsPage(service, 'GET', '/console/sign-in-methods')
    const start_url = '/console/oidc/start'
    expect(body.data).toEqual({ client_credentials: true, issuer: { name: 'Example Login', start_url } })
  })

  it('starts a session with the organization, the scopes and the name of the ID token', async () => {
    const response = await signIn()
    expect([response.status, locationOf(response)]).toEqual([302, `${service.address}/console/`])
    expect(response.headers.get('set-cookie')).toMatch(
      /^kith_session=[^;]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    )
    const headers = { cookie: cookieOf(response) }
    const { body } = await sendAsPage(service, 'GET', '/console/session', { headers })
    expect(body.data).toMatchObject({
      name: 'Ada Lovelace',
      organization: { key: organization.key },
      scopes: ['people:read', 'people:write', 'changes:read'],
    })
    await sendAsPage(service, 'POST', '/v1/people', { body: { external_id: 'grace' }, headers })
    const changes = await sendAsPage(service, 'GET', '/v1/changes', { headers })
    expect(changes.body.data.items.at(-1)).toMatchObject({ actor: 'Ada Lovelace' })
  })

  it('sends the browser away with PKCE, a state and a nonce, which stay in a cookie for ten minutes', async () => {
    const started = await open(`${service.address}/console/oidc/start`)
    const { origin, pathname, searchParams } = new URL(locationOf(started))
    expect(origin + pathname).toBe(`${issuer.url}/authorize`)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      client_id: 'kith-console',
      response_type: 'code',
      code_challenge_method: 'S256',
      scope: 'openid profile email',
      redirect_uri: `${service.address}/console/oidc/callback`,
    })
    const cookie = started.headers.get('set-cookie')!
    expect(cookie).toMatch(
      /^kith_sign_in=[\w-]+\.[\w-]+\.[\w-]+; Path=\/console\/oidc; Max-Age=600; HttpOnly; SameSite=Lax$/,
    )
    expect(cookie).toContain(searchParams.get('state'))
    expect(cookie).toContain(searchParams.get('nonce'))
    expect(cookie).not.toContain(searchParams.get('code_challenge'))
  })

  it.each([
    [{ name: undefined, email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: '' }, 'user-1'],
    [{ name: 'a\nb', email: 7 }, 'user-1'],
  ])('names a person with the claims %j as %s', async (claims, name) => {
    Object.assign(issuer.claims, claims)
    const headers = { cookie: cookieOf(await signIn()) }
    expect((await sendAsPage(service, 'GET', '/console/session', { headers })).body.data.name).toBe(name)
  })

  it.each([
    ['no organization', { org: undefined }],
    ['an unknown organization', { org: 'nobody' }],
    ['a malformed organization', { org: '../default' }],
    ['no scope of kith', { scope: 'openid profile' }],
    ['scopes in a list', { scope: ['people:read'] }],
  ])('is refused for a person with %s', async (_, claims) => {
    Object.assign(issuer.claims, claims)
    expect(problemOf(await signIn())).toEqual(refusedWith('no_access'))
    expect(await countSessions()).toBe(0)
  })

  it.each([
    ['another key', {}, true],
    ['another issuer', { iss: 'https://attacker.example' }, false],
    ['another client', { aud: 'another-client' }, false],
    ['another nonce', { nonce: 'x' }, false],
    ['the time of yesterday', { exp: Math.floor(Date.now() / 1_000) - 86_400 }, false],
  ])('is refused for an ID token with %s', async (_, claims, isForged) => {
    Object.assign(issuer.claims, claims)
    issuer.isForged = isForged
    expect(problemOf(await signIn())).toEqual(refusedWith('failed'))
    expect(await countSessions()).toBe(0)
  })

  it('that the person or the issuer refuses leads back with a word of kith, not with the text of the issuer', async () => {
    issuer.error = 'access_denied'
    expect(problemOf(await signIn())).toEqual(refusedWith('denied'))
    issuer.error = '"><script>'
    expect(problemOf(await signIn())).toEqual(refusedWith('failed'))
    expect(service.logs.join('')).not.toContain('<script>')
  })

  it('is refused in another browser, with another state, and a second time', async () => {
    const { callback, cookie } = await goToIssuer()
    expect(problemOf(await open(callback))).toEqual(refusedWith('expired'))
    expect(problemOf(await open(callback, (await goToIssuer()).cookie))).toEqual(refusedWith('expired'))
    expect(problemOf(await open(callback, `${cookie}; ${cookie}`))).toEqual(refusedWith('expired'))
    const stateless = new URL(callback)
    stateless.searchParams.delete('state')
    expect(problemOf(await open(stateless, cookie))).toEqual(refusedWith('expired'))
    expect(locationOf(await open(callback, cookie))).toBe(`${service.address}/console/`)
    expect(problemOf(await open(callback, cookie))).toEqual(refusedWith('failed'))
    expect(await countSessions()).toBe(1)
  })

  it('that kith cannot store leads to the sign-in page too', async () => {
    const { callback, cookie } = await goToIssuer()
    await service.sql('alter table sessions rename to sessions_away')
    const response = await open(callback, cookie)
    await service.sql('alter table sessions_away rename to sessions')
    expect(problemOf(response)).toEqual(refusedWith('failed'))
  })

  it('waits after ten failures from one address', async () => {
    const callback = `${service.address}/console/oidc/callback?code=x&state=x`
    for (let attempt = 0; attempt < 10; attempt++)
      expect(problemOf(await open(callback))).toEqual(refusedWith('expired'))
    expect(problemOf(await open(callback))).toEqual(refusedWith('throttled'))
  })

  it('with TLS in front has secure cookies and an address by HTTPS', async () => {
    from['X-Forwarded-Proto'] = 'https'
    const started = await open(`${service.address}/console/oidc/start`)
    expect(started.headers.get('set-cookie')).toMatch(/; SameSite=Lax; Secure$/)
    const redirectUri = new URL(locationOf(started)).searchParams.get('redirect_uri')
    expect(redirectUri).toBe(`${service.address.replace('http:', 'https:')}/console/oidc/callback`)
  })
})

it('an issuer that is away leads to the sign-in page, and is found once it is back', async () => {
  const other = await startService(issuer.environment)
  const start = () => open(`${other.address}/console/oidc/start`)
  const unavailable = `${other.address}/console/sign-in?error=unavailable`
  try {
    issuer.isAway = true
    expect(locationOf(await start())).toBe(unavailable)
    issuer.isAway = false
    const started = await start()
    const callback = locationOf(await open(locationOf(started)))
    issuer.isAway = true
    expect(locationOf(await open(callback, cookieOf(started)))).toBe(unavailable)
  } finally {
    issuer.isAway = false
    await other.stop()
  }
})

it('a service below a path of another host is led back to that path', async () => {
  const other = await startService({ ...issuer.environment, KITH_PUBLIC_URL: 'https://example.org/contacts/' })
  try {
    const started = await open(`${other.address}/console/oidc/start`)
    const redirectUri = new URL(locationOf(started)).searchParams.get('redirect_uri')
    expect(redirectUri).toBe('https://example.org/contacts/console/oidc/callback')
    expect(started.headers.get('set-cookie')).toContain('; Path=/contacts/console/oidc;')
  } finally {
    await other.stop()
  }
})

it('a service without a client of an issuer offers none', async () => {
  const plain = await startService()
  try {
    const { body } = await sendAsPage(plain, 'GET', '/console/sign-in-methods')
    expect(body.data).toEqual({ client_credentials: true, issuer: null })
    expect((await open(`${plain.address}/console/oidc/start`)).headers.get('location')).toBeNull()
  } finally {
    await plain.stop()
  }
})
