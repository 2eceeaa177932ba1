import { once } from 'node:events'
import http from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sendAsPage } from '../../test/support/browser-session.ts'
import { startIssuer, type TestIssuer } from '../../test/support/issuer.ts'
import { type Organization, type Service, startService } from '../../test/support/service.ts'
import { findOrganization } from '../organizations/organizations.ts'
import { startSession } from '../sessions/sessions.ts'

let issuer: TestIssuer
let service: Service
let organization: Organization
beforeAll(async () => {
  issuer = await startIssuer()
  // Behind a proxy, each test can have a separate address.
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

/** The cookies that a response sets, without the removed ones. */
const cookiesOf = ({ headers }: Response) => headers.getSetCookie().filter(cookie => !cookie.includes('Max-Age=0'))
const cookieOf = (response: Response) => cookiesOf(response)[0]?.split(';')[0] ?? ''
const open = (url: string | URL, cookie = '') => fetch(url, { redirect: 'manual', headers: { ...from, cookie } })
const locationOf = (response: Response) => new URL(response.headers.get('location')!, response.url).href

/**
 * Opens the start page and goes to the issuer. Returns the URL to which the issuer redirects back, and the cookie of
 * the browser.
 */
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
  [response.status, locationOf(response).replace(service.address, ''), cookiesOf(response)] as const
const refusedWith = (problem: string) => [302, `/console/sign-in?error=${problem}`, []]
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
    expect(response.headers.getSetCookie()).toEqual([
      'kith_sign_in=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
      expect.stringMatching(/^kith_session=[^;]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/),
    ])
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
    expect(cookie).toMatch(/^kith_sign_in=[\w-]+\.[\w-]+\.[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
    expect(cookie).toContain(searchParams.get('state'))
    expect(cookie).toContain(searchParams.get('nonce'))
    expect(cookie).not.toContain(searchParams.get('code_challenge'))
  })

  it.each([
    [{ name: undefined, email: 'ada@example.com' }, 'ada@example.com'],
    [{ name: '' }, 'user-1'],
    [{ name: 'kith', email: 'Link' }, 'user-1'],
    [{ name: 'a\nb', email: 7 }, 'user-1'],
    [{ name: 'adA \u202eecalevoL', email: 'ada\u200b@example.com' }, 'user-1'],
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
    ['a time of an hour ahead', { iat: Math.floor(Date.now() / 1_000) + 3_600 }, false],
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

  it.each(['cross-site', 'same-site'])('that a page of another host begins (%s) leads to the button', async site => {
    const headers = { ...from, 'Sec-Fetch-Site': site }
    const response = await fetch(`${service.address}/console/oidc/start`, { redirect: 'manual', headers })
    expect([locationOf(response), cookiesOf(response)]).toEqual([`${service.address}/console/sign-in`, []])
  })

  it.each(['same-origin', 'none'])('begins from the page itself and from the address bar (%s)', async site => {
    const headers = { ...from, 'Sec-Fetch-Site': site }
    const response = await fetch(`${service.address}/console/oidc/start`, { redirect: 'manual', headers })
    expect(new URL(locationOf(response)).origin).toBe(issuer.url)
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

  it('succeeds for thirty people at one address at once, also after requests of another site for the callback', async () => {
    const forged = `${service.address}/console/oidc/callback?code=x&state=x`
    for (let count = 0; count < 20; count++) expect(problemOf(await open(forged))).toEqual(refusedWith('expired'))
    const responses = await Promise.all(Array.from({ length: 30 }, signIn))
    expect(new Set(responses.map(locationOf))).toEqual(new Set([`${service.address}/console/`]))
    expect(await countSessions()).toBe(30)
  })

  it('waits after ten codes that the issuer refuses, from one address', async () => {
    for (let attempt = 0; attempt < 10; attempt++) {
      const { callback, cookie } = await goToIssuer()
      const guessed = new URL(callback)
      guessed.searchParams.set('code', 'guessed')
      expect(problemOf(await open(guessed, cookie))).toEqual(refusedWith('failed'))
    }
    expect(problemOf(await signIn())).toEqual(refusedWith('throttled'))
  })

  it('with TLS in front has secure cookies and an address by HTTPS', async () => {
    from['X-Forwarded-Proto'] = 'https'
    const started = await open(`${service.address}/console/oidc/start`)
    expect(started.headers.get('set-cookie')).toMatch(/; SameSite=Lax; Secure$/)
    const redirectUri = new URL(locationOf(started)).searchParams.get('redirect_uri')
    expect(redirectUri).toBe(`${service.address.replace('http:', 'https:')}/console/oidc/callback`)
  })
})

it('an issuer whose response has no end is unavailable, and is not read to the end', async () => {
  const { callback, cookie } = await goToIssuer()
  Object.assign(issuer, { isEndless: true, sentBytes: 0 })
  try {
    expect(problemOf(await open(callback, cookie))).toEqual(refusedWith('unavailable'))
    expect(issuer.sentBytes).toBeLessThan(16_777_216)
  } finally {
    issuer.isEndless = false
  }
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

/** Requests a page under a name of the service. `fetch` would set the Host header itself. */
async function openAs(host: string, url: string, headers: Record<string, string> = {}, method = 'GET') {
  const request = http.request(url, { method, headers: { ...headers, host }, agent: false }).end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.resume()
  return response
}

describe('a service with KITH_PUBLIC_URL', () => {
  let other: Service
  beforeAll(async () => {
    other = await startService({ ...issuer.environment, KITH_PUBLIC_URL: 'https://example.org/contacts/' })
  })
  afterAll(() => other.stop())

  it('below a path of another host is led back to that path', async () => {
    const { headers } = await openAs('example.org', `${other.address}/console/oidc/start`)
    const redirectUri = new URL(headers.location!).searchParams.get('redirect_uri')
    expect(redirectUri).toBe('https://example.org/contacts/console/oidc/callback')
    expect(headers['set-cookie']).toEqual([expect.stringMatching(/^__Host-kith_sign_in=.*; Path=\/;.*; Secure$/)])
  })

  it.each(['/console/', '/console/people', '/console/session', '/console/sign-in-methods'])(
    'answers %s under its public name alone, with any port',
    async path => {
      for (const host of ['example.org', 'EXAMPLE.org:8443'])
        expect((await openAs(host, other.address + path)).statusCode).toBe(200)
      for (const host of ['evil.example', 'example.org.evil.example', '127.0.0.1', 'example.org:x', ''])
        expect((await openAs(host, other.address + path)).statusCode).toBe(403)
    },
  )

  it('takes the cookie of a session from its public origin alone', async () => {
    const { id, key } = (await findOrganization(other.db, 'default'))!
    const identity = { name: 'Ada', scope: 'schema:read people:read', method: 'code' } as const
    const { token } = await startSession(other.db, { id, key }, identity)
    const statusFor = async (host: string, headers: Record<string, string>) =>
      (await openAs(host, `${other.address}/v1/organization`, { cookie: `__Host-kith_session=${token}`, ...headers }))
        .statusCode
    expect(await statusFor('example.org', { origin: 'https://example.org' })).toBe(200)
    expect(await statusFor('example.org', { 'sec-fetch-site': 'same-origin' })).toBe(200)
    expect(await statusFor('evil.example', { origin: 'http://evil.example' })).toBe(403)
    expect(await statusFor('evil.example', { 'sec-fetch-site': 'same-origin' })).toBe(403)
    expect(await statusFor('example.org', { origin: 'http://example.org' })).toBe(403)
  })

  it('answers the API under any name', async () => {
    expect((await openAs('evil.example', `${other.address}/healthz`)).statusCode).toBe(200)
    expect((await openAs('evil.example', `${other.address}/v1/organization`)).statusCode).toBe(401)
  })
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
