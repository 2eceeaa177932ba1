import { describe, expect, it } from 'vitest'
import { codeFor, sendAsPage, signIn } from '../../test/support/browser-session.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { createClient, revokeClient } from '../auth/clients.ts'
import { version } from '../process/version.ts'
import { deleteExpired } from './sessions.ts'

// Behind a proxy, each test can send its attempts from its own address.
const service = useOwnService({ KITH_BEHIND_PROXY: '1' })
const organization = useShop(service)

const post = (body: unknown, headers: Record<string, string> = {}) =>
  sendAsPage(service, 'POST', '/console/session', { body, headers })
const cookieOf = ({ headers }: { headers: Headers }) => headers.get('set-cookie')?.split(';')[0] ?? ''
const refusalOf = ({ status, body: { error, message } }: Awaited<ReturnType<typeof post>>) => [status, error, message]
const isEnded = [401, 'unauthorized', 'The session has ended. Sign in to the console again.']
const isUsed = [401, 'unauthorized', 'The link has expired or was used. Print a new one with kith console.']

describe('a sign-in with the code of a link', () => {
  it('sets a cookie that no script reads, no other site sends and that lasts twelve hours', async () => {
    const before = Date.now()
    const { setCookie, reply } = await signIn(service, organization, 'people:read people:write', 'Operator')
    const value = `${organization.key}\\.[\\w-]{43}`
    expect(setCookie).toMatch(new RegExp(`^kith_session=${value}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$`))
    expect([reply.status, reply.body.status]).toEqual([200, 'Success'])
    const { id, expires_at, ...session } = reply.body.data
    expect(session).toEqual({
      name: 'Operator',
      organization: { key: organization.key },
      scopes: ['people:read', 'people:write'],
      role: null,
      fields: null,
      method: 'code',
      account_id: null,
      version,
    })
    expect(id).toMatch(/^[\da-f-]{36}$/)
    expect(Date.parse(expires_at) - before).toBeGreaterThan(43_190_000)
    expect(Date.parse(expires_at) - Date.now()).toBeLessThan(43_210_000)
  })

  it('sets a cookie that travels only by HTTPS, if the proxy says that the browser uses it', async () => {
    const code = await codeFor(service, organization)
    const { headers } = await post({ code }, { 'X-Forwarded-Proto': 'https' })
    expect(headers.get('set-cookie')).toMatch(/; SameSite=Strict; Secure$/)
  })

  it('lets the page write, under the name of the session in the change log', async () => {
    const { send, reply } = await signIn(service, organization, 'people:write people:read changes:read', 'Operator')
    expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
    const { body } = await send('GET', '/v1/changes')
    expect(body.data.items.at(-1)).toMatchObject({ actor: 'Operator', operation: 'create' })
    expect((await send('GET', '/console/session')).body.data).toEqual(reply.body.data)
    expect((await sendAsPage(service, 'GET', '/console/session')).body.data).toBeNull()
  })

  it('gives the page no scope that the link does not have', async () => {
    const { send } = await signIn(service, organization, 'people:read')
    const { status, body } = await send('POST', '/v1/people', { external_id: 'ada' })
    expect([status, body.error]).toEqual([403, 'forbidden'])
    expect((await organization.send('GET', '/v1/people/ada')).status).toBe(404)
  })

  it('succeeds for one of twenty requests that send the code at once', async () => {
    const code = await codeFor(service, organization)
    const from = { 'X-Forwarded-For': '192.0.2.1' }
    const replies = await Promise.all(Array.from({ length: 20 }, () => post({ code }, from)))
    const statuses = replies.map(({ status }) => status)
    expect(statuses.filter(status => status === 200)).toHaveLength(1)
    expect(statuses.filter(status => status !== 200).every(status => [401, 429].includes(status))).toBe(true)
    const [{ sessions } = {}] = await service.sql(
      'select count(*)::integer as sessions from sessions where organization_id = $1',
      [organization.id],
    )
    expect(sessions).toBe(1)
  })

  it('is refused for a code that has expired, after 60 seconds', async () => {
    const code = await codeFor(service, organization)
    const [{ seconds } = { seconds: 0 }] = await service.sql<{ seconds: number }>(
      'select extract(epoch from expires_at - now())::float as seconds from sign_in_codes where organization_id = $1',
      [organization.id],
    )
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(60)
    await service.sql('update sign_in_codes set expires_at = now() where organization_id = $1', [organization.id])
    expect(refusalOf(await post({ code }))).toEqual(isUsed)
  })
})

describe('a sign-in with the credentials of a client', () => {
  const makeClient = (name: string) =>
    createClient(service.db, { organizationKey: organization.key, name, scope: 'people:read' })

  it('gives the session the scopes of the client, and a name that tells clients apart', async () => {
    const client = await makeClient('Support')
    const { status, body } = await post(client)
    expect([status, body.data.scopes, body.data.name]).toEqual([200, ['people:read'], `Support (${client.client_id})`])
    const nameless = await makeClient('')
    expect((await post(nameless)).body.data.name).toBe(nameless.client_id)
  })

  it('is refused for a wrong secret, and waits after ten of them', async () => {
    const client = await makeClient('Support')
    const wrong = { ...client, client_secret: 'wrong' }
    const from = { 'X-Forwarded-For': '192.0.2.2' }
    for (let attempt = 0; attempt < 10; attempt++)
      expect(refusalOf(await post(wrong, from))).toEqual([
        401,
        'unauthorized',
        'The client is unknown or its secret is wrong.',
      ])
    const { status, headers } = await post(client, from)
    expect(status).toBe(429)
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('ends with the revocation of the client', async () => {
    const client = await makeClient('Support')
    const cookie = cookieOf(await post(client))
    await revokeClient(service.db, client.client_id)
    expect(refusalOf(await sendAsPage(service, 'GET', '/console/session', { headers: { cookie } }))).toEqual(isEnded)
  })
})

describe('a sign-in', () => {
  it.each([
    [{}, 'must have either code, or client_id and client_secret, or organization, name and password'],
    [{ client_id: 'x' }, 'must have either code, or client_id and client_secret, or organization, name and password'],
    [
      { code: 'x', client_id: 'x', client_secret: 'x' },
      'must have either code, or client_id and client_secret, or organization, name and password',
    ],
  ])('with %j is refused with what is missing', async (body, message) => {
    const { status, body: refusal } = await post(body)
    expect([status, refusal.details]).toEqual([400, [{ path: '', message }]])
  })

  it.each([
    ['a code that is no text', { code: 7 }, 'invalid_json', ['/code']],
    ['a member that does not exist', { code: 'x', org: 'default' }, 'invalid_parameter', ['/org']],
    [
      'a secret that is too long',
      { client_id: 'x', client_secret: 'x'.repeat(201) },
      'invalid_parameter',
      ['/client_secret'],
    ],
    ['a list', '[]', 'invalid_json', ['']],
    ['a body that ends early', '{"code":', 'failed_binding_json', undefined],
    ['no body', '', 'invalid_parameter', ['']],
  ])('with %s is refused by its path', async (_, body, error, paths) => {
    const { status, body: refusal } = await post(body)
    expect([status, refusal.error]).toEqual([400, error])
    if (paths) expect(refusal.details?.map(({ path }) => path)).toEqual(paths)
  })

  it('with a form, or with a code in the address, is refused: addresses are in logs', async () => {
    const code = await codeFor(service, organization)
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    expect((await post(`code=${code}`, form)).status).toBe(400)
    expect((await sendAsPage(service, 'POST', `/console/session?code=${code}`)).status).toBe(400)
    expect((await post({ code: 'x'.repeat(20_000) })).status).toBe(413)
    expect((await post({ code })).status).toBe(200)
  })

  it('ends the session whose cookie it replaces, and is possible with a cookie that has ended', async () => {
    const first = await signIn(service, organization)
    const second = await post({ code: await codeFor(service, organization) }, { cookie: first.cookie })
    expect(second.status).toBe(200)
    expect(refusalOf(await first.send('GET', '/v1/organization'))).toEqual(isEnded)
    const third = await post({ code: await codeFor(service, organization) }, { cookie: first.cookie })
    expect([third.status, cookieOf(third)]).toEqual([200, expect.stringMatching(/^kith_session=./)])
    const { items } = (await organization.send('GET', '/v1/sessions')).body.data
    expect(items.map(({ id }: { id: string }) => id)).toEqual([third.body.data.id, second.body.data.id])
  })

  it('is refused from another site, and without the headers that tell where it comes from', async () => {
    const code = await codeFor(service, organization)
    const other = { 'Sec-Fetch-Site': 'cross-site', Origin: service.address }
    expect((await post({ code }, other)).status).toBe(403)
    const json = { 'Content-Type': 'application/json' }
    const bare = await fetch(`${service.address}/console/session`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ code }),
    })
    expect(bare.status).toBe(403)
    expect((await post({ code })).status).toBe(200)
  })

  it('stores neither code nor cookie, and logs neither', async () => {
    const code = await codeFor(service, organization)
    const stored = async (table: string) =>
      JSON.stringify(await service.sql(`select t::text from ${table} t where organization_id = $1`, [organization.id]))
    const codes = await stored('sign_in_codes')
    const cookie = cookieOf(await post({ code }))
    const text = [codes, await stored('sessions'), ...service.logs].join('\n')
    expect(codes).toContain('tests')
    for (const secret of [code, cookie]) expect(text).not.toContain(secret.split('.')[1])
  })
})

describe('a session', () => {
  it('that is signed out is refused, and its cookie is removed', async () => {
    const { send } = await signIn(service, organization)
    expect((await send('GET', '/v1/organization')).status).toBe(200)
    const out = await send('DELETE', '/console/session')
    expect([out.status, out.body.data]).toEqual([200, true])
    expect(out.headers.get('set-cookie')).toMatch(/^kith_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/)
    for (const path of ['/v1/organization', '/console/session'])
      expect(refusalOf(await send('GET', path))).toEqual(isEnded)
  })

  it('keeps its cookie when another site causes a request, or the database fails', async () => {
    const { send } = await signIn(service, organization)
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await send(method, '/console/session', undefined, { 'Sec-Fetch-Site': 'same-site' })
      expect([status, headers.get('set-cookie')]).toEqual([403, null])
    }
    await service.sql('alter table sessions rename to sessions_away')
    const failed = await send('GET', '/console/session')
    await service.sql('alter table sessions_away rename to sessions')
    expect([failed.status, failed.headers.get('set-cookie')]).toEqual([500, null])
    expect((await send('GET', '/console/session')).status).toBe(200)
  })

  it('is signed out although another page has ended it meanwhile', async () => {
    const { send, reply } = await signIn(service, organization)
    expect((await send('GET', '/console/session')).status).toBe(200)
    expect((await organization.send('DELETE', `/v1/sessions/${reply.body.data.id}`)).status).toBe(200)
    const { status, headers } = await send('DELETE', '/console/session')
    expect([status, headers.get('set-cookie')]).toEqual([200, expect.stringContaining('Max-Age=0')])
  })

  it('is listed until it is ended', async () => {
    const session = await signIn(service, organization, 'people:read', 'Operator')
    const { items } = (await organization.send('GET', '/v1/sessions')).body.data
    const { id, expires_at } = session.reply.body.data
    expect(items).toMatchObject([
      { id, name: 'Operator', scopes: ['people:read'], method: 'code', client_id: null, expires_at },
    ])
    expect((await organization.send('DELETE', `/v1/sessions/${id}`)).status).toBe(200)
    expect((await organization.send('GET', '/v1/sessions')).body.data).toEqual({ items: [] })
    expect((await organization.send('DELETE', `/v1/sessions/${id}`)).status).toBe(404)
    expect(refusalOf(await session.send('GET', '/v1/organization'))).toEqual(isEnded)
  })

  it('that has expired is refused, and deleted in the background with expired codes', async () => {
    const { send } = await signIn(service, organization)
    await codeFor(service, organization)
    await service.sql('update sessions set expires_at = now() where organization_id = $1', [organization.id])
    await service.sql('update sign_in_codes set expires_at = now() where organization_id = $1', [organization.id])
    expect(refusalOf(await send('GET', '/v1/organization'))).toEqual(isEnded)
    await deleteExpired(service.db)
    for (const table of ['sessions', 'sign_in_codes'])
      expect(await service.sql(`select from ${table} where organization_id = $1`, [organization.id])).toEqual([])
  })

  it('does not authenticate a request of another site, nor one that does not tell where it comes from', async () => {
    const { send, cookie } = await signIn(service, organization)
    for (const site of ['cross-site', 'same-site', 'none', 'same-origin, cross-site'])
      expect((await send('POST', '/v1/people', { external_id: 'eve' }, { 'Sec-Fetch-Site': site })).status).toBe(403)
    expect((await fetch(`${service.address}/v1/organization`, { headers: { cookie } })).status).toBe(403)
    const byOrigin = (origin: string) =>
      fetch(`${service.address}/v1/organization`, { headers: { cookie, Origin: origin } }).then(({ status }) => status)
    expect(await byOrigin('https://attacker.example')).toBe(403)
    expect(await byOrigin('null')).toBe(403)
    expect(await byOrigin(service.address)).toBe(200)
  })

  it('is not used where the request has an Authorization header', async () => {
    const { send } = await signIn(service, organization)
    expect((await send('GET', '/v1/organization', undefined, { Authorization: 'Bearer nothing' })).status).toBe(401)
    const other = await service.organization()
    const { body } = await send('GET', '/v1/organization', undefined, { Authorization: `Bearer ${other.token}` })
    expect(body.data.key).toBe(other.key)
  })
})
