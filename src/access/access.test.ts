import { describe, expect, it } from 'vitest'
import { createClient, type Scope } from '../../client/index.ts'
import { sendAsPage } from '../../test/support/browser-session.ts'
import { type Organization, type Service, startService, useOwnService } from '../../test/support/service.ts'
import { tokenUses } from '../auth/issued-tokens.ts'
import { rotateKeys } from '../auth/keys/keys.ts'
import { issueToken as makeToken } from '../auth/token.ts'
import { contextOf } from '../db/context.ts'
import { endSession, startSession } from '../sessions/sessions.ts'

const service = useOwnService()

const path = '/v1/clients'

/** The names of the clients in the list of an organization, newest first. */
const namesOf = async ({ client }: Organization) =>
  (await client.access.clients.list().page()).items.map(({ name }) => name)

describe('a client that was created over the API', () => {
  it('fetches tokens with its scopes, until it is revoked', async () => {
    const { client } = await service.organization()
    const created = await client.access.clients.create({ name: 'Shop', scopes: ['people:read', 'people:write'] })
    const { client_id, client_secret, ...shown } = created
    expect(shown).toEqual({
      name: 'Shop',
      scopes: ['people:read', 'people:write'],
      role: null,
      created_at: expect.any(String),
      revoked_at: null,
    })
    const shop = createClient({
      url: service.address,
      clientCredentials: { clientId: client_id, clientSecret: client_secret },
      retries: 0,
    })
    expect(await shop.people.create({ external_id: 'ada' })).toMatchObject({ external_id: 'ada' })
    await expect(shop.organization()).rejects.toMatchObject({ status: 403 })
    expect(await client.access.clients.revoke(client_id)).toBe(true)
    expect(await client.access.clients.get(client_id)).toMatchObject({ client_id, revoked_at: expect.any(String) })
    const late = createClient({
      url: service.address,
      clientCredentials: { clientId: client_id, clientSecret: client_secret },
      retries: 0,
    })
    await expect(late.people.get('ada')).rejects.toMatchObject({ status: 401 })
    await expect(client.access.clients.revoke(client_id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
  })

  it('has a secret that no other response, no log line and no stored response shows', async () => {
    const { id, client, send } = await service.organization()
    const headers = { 'Idempotency-Key': 'once' }
    const {
      status,
      body,
      headers: replied,
    } = await send('POST', path, { name: 'Shop', scopes: ['people:read'] }, headers)
    expect([status, replied.get('location')]).toEqual([201, `${path}/${body.data.client_id}`])
    const second = await send('POST', path, { name: 'Shop', scopes: ['people:read'] }, headers)
    expect(second.body.data.client_id).not.toBe(body.data.client_id)
    const secret: string = body.data.client_secret
    const stored = await service.sql('select from idempotency_keys where organization_id = $1', [id])
    expect(stored).toEqual([])
    const { items } = await client.access.clients.list().page()
    expect(items).toHaveLength(2)
    expect(JSON.stringify([items, await client.access.clients.get(body.data.client_id)])).not.toContain(secret)
    expect(service.logs.join('')).not.toContain(secret)
    const [row] = await service.sql<{ text: string }>(
      'select c::text as text from clients c where organization_id = $1 limit 1',
      [id],
    )
    expect(row!.text).not.toContain(secret)
  })

  it('is listed newest first, page by page', async () => {
    const organization = await service.organization()
    const { client } = organization
    for (const name of ['one', 'two', 'three']) await client.access.clients.create({ name, scopes: ['people:read'] })
    expect(await namesOf(organization)).toEqual(['three', 'two', 'one'])
    const first = await client.access.clients.list({ size: 2 }).page()
    expect([first.items.map(({ name }) => name), first.has_more]).toEqual([['three', 'two'], true])
    const rest = await client.access.clients.list({ size: 2, after: first.next! }).page()
    expect([rest.items.map(({ name }) => name), rest.has_more]).toEqual([['one'], false])
    expect((await client.access.clients.list({ after: 'nobody' }).page()).items).toEqual([])
  })

  it('belongs to its organization alone: another one neither sees nor revokes it', async () => {
    const [one, other] = [await service.organization(), await service.organization()]
    const { client_id } = await one.client.access.clients.create({ name: 'Shop', scopes: ['people:read'] })
    expect(await namesOf(other)).toEqual([])
    expect((await other.client.access.clients.list({ after: client_id }).page()).items).toEqual([])
    await expect(other.client.access.clients.get(client_id)).rejects.toMatchObject({ status: 404 })
    await expect(other.client.access.clients.revoke(client_id)).rejects.toMatchObject({ status: 404 })
    expect(await one.client.access.clients.get(client_id)).toMatchObject({ revoked_at: null })
  })
})

describe('a client or a token is refused', () => {
  const bodies = { [path]: { name: 'x' }, '/v1/tokens': { expires_in: 60 } }

  it.each(Object.entries(bodies))('with a scope that the caller does not have: POST %s', async (address, body) => {
    const organization = await service.organization()
    const send = service.sender(await service.tokenFor(organization.key, 'access:write people:read'))
    const scopes = ['people:read', 'people:write', 'access:write', 'schema:write']
    const refused = await send('POST', address, { ...body, scopes })
    expect([refused.status, refused.body.error]).toEqual([400, 'invalid_parameter'])
    expect(refused.body.details!.map(detail => detail.path)).toEqual(['/scopes/1', '/scopes/3'])
    expect(refused.body.details![0]!.message).toContain('people:write')
    expect(await namesOf(organization)).toEqual([])
    expect((await send('POST', address, { ...body, scopes: ['people:read', 'access:write'] })).status).toBeLessThan(300)
  })

  it.each([
    ['no scope', { scopes: [] }, '/scopes'],
    ['an unknown scope', { scopes: ['people:all'] }, '/scopes/0'],
    ['a line feed in its name', { name: 'a\nb' }, '/name'],
    ['an empty name', { name: '' }, '/name'],
    ['a name of 256 characters', { name: 'a'.repeat(256) }, '/name'],
  ])('with %s', async (_, change, at) => {
    const organization = await service.organization()
    for (const [address, body] of Object.entries(bodies)) {
      const request = { ...body, name: 'x', scopes: ['people:read'], ...change }
      const { status, body: refusal } = await organization.send('POST', address, request)
      expect([status, refusal.details?.map(detail => detail.path)]).toEqual([400, [at]])
    }
    expect(await namesOf(organization)).toEqual([])
  })

  it('without the scope access:write, and the lists without access:read', async () => {
    const { key } = await service.organization()
    const readOnly = service.sender(await service.tokenFor(key, 'access:read people:read'))
    for (const [address, body] of Object.entries(bodies))
      expect((await readOnly('POST', address, { ...body, scopes: ['people:read'] })).status).toBe(403)
    const writeOnly = service.sender(await service.tokenFor(key, 'access:write'))
    for (const address of [path, '/v1/keys']) expect((await writeOnly('GET', address)).status).toBe(403)
  })
})

describe('POST /v1/tokens', () => {
  it('makes a token with its own name and scopes, until it expires', async () => {
    const { client, send } = await service.organization()
    const made = await client.access.createToken({ scopes: ['people:write'], name: 'Maria', expires_in: 300 })
    expect(made).toMatchObject({ name: 'Maria', scopes: ['people:write'] })
    const { exp, iat } = JSON.parse(String(Buffer.from(made.token.split('.')[1]!, 'base64url')))
    expect([exp - iat, made.expires_at]).toEqual([300, new Date(exp * 1_000).toISOString()])
    const maria = service.sender(made.token)
    expect((await maria('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
    expect((await maria('GET', '/v1/people/ada')).status).toBe(403)
    expect((await send('GET', '/v1/changes')).body.data.items.at(-1).actor).toBe('Maria')
    expect(service.logs.join('')).not.toContain(made.token)
  })

  it('names the caller as the subject by default', async () => {
    const { key } = await service.organization()
    const send = service.sender(await service.tokenFor(key, 'access:write', 'Maria'))
    const { status, body } = await send('POST', '/v1/tokens', { scopes: ['access:write'], expires_in: 60 })
    expect([status, body.data.name]).toEqual([200, 'Maria'])
  })

  it.each([
    'link',
    'retention',
    'kith',
    'Kith',
    'k\u00edth mover',
    '\uff2bith',
    'ki\u200bth',
    '\u202ehtik',
    'Ma\u00adria',
    'default.Zm9vYmFyYmF6cXV4',
  ])('refuses the name of another actor: %s', async name => {
    const { send } = await service.organization()
    const { status, body } = await send('POST', '/v1/tokens', { scopes: ['people:read'], name, expires_in: 60 })
    expect([status, body.details?.map(detail => detail.path)]).toEqual([400, ['/name']])
  })

  it.each([0, 366 * 86_400 + 1, 1.5, '60', null])('refuses a lifetime of %j', async expires_in => {
    const { send } = await service.organization()
    const { status, body } = await send('POST', '/v1/tokens', { scopes: ['people:read'], expires_in })
    expect([status, body.details?.map(detail => detail.path)]).toEqual([400, ['/expires_in']])
  })
})

describe('a token that a token, a client or a session makes', () => {
  const expiry = { scopes: ['access:write', 'people:write'], expires_in: 3_600 }
  const statusOf = async (token: string, headers: Record<string, string> = {}, first_name = 'Ada') =>
    (await service.sender(token)('POST', '/v1/people/upsert', { external_id: 'ada', first_name }, headers)).status
  const mint = async (token: string, body: object = expiry): Promise<string> => {
    const reply = await service.sender(token)('POST', '/v1/tokens', body)
    expect(reply.status).toBe(200)
    return reply.body.data.token
  }

  it('ends with the client, and so do those that it makes', async () => {
    const { client } = await service.organization()
    const made = await client.access.clients.create({ name: 'Shop', scopes: ['access:write', 'people:write'] })
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: made.client_id,
      client_secret: made.client_secret,
    })
    const granted = await fetch(`${service.address}/oauth/token`, { method: 'POST', body: form })
    const { access_token } = (await granted.json()) as { access_token: string }
    const child = await mint(access_token, { ...expiry, expires_in: 366 * 86_400 })
    const tokens = [child, await mint(child)]
    for (const token of tokens) expect(await statusOf(token)).toBeLessThan(300)
    await client.access.clients.revoke(made.client_id)
    const fresh = await startService({}, service.databaseUrl)
    try {
      for (const token of tokens) {
        const { status, body } = await fresh.sender(token)('GET', '/v1/organization')
        expect([status, body.message]).toEqual([401, 'The token is not valid: its client has been revoked.'])
      }
    } finally {
      await fresh.stop()
    }
  })

  it('ends with the session, and cannot be made for longer', async () => {
    const { id, key } = await service.organization()
    const scope = 'access:write people:write'
    const { token, session } = await startSession(service.db, { id, key }, { name: 'Ada', scope, method: 'code' })
    const headers = { cookie: `kith_session=${token}` }
    const refused = await sendAsPage(service, 'POST', '/v1/tokens', {
      body: { ...expiry, expires_in: 86_400 },
      headers,
    })
    expect([refused.status, refused.body.details?.map(({ path }) => path)]).toEqual([400, ['/expires_in']])
    const child = (await sendAsPage(service, 'POST', '/v1/tokens', { body: expiry, headers })).body.data.token
    const grandchild = await mint(child, { ...expiry, expires_in: 60 })
    expect(await statusOf(grandchild)).toBeLessThan(300)
    expect((await service.sender(child)('POST', '/v1/tokens', { ...expiry, expires_in: 7_200 })).status).toBe(400)
    await endSession(contextOf(service.db, id), session.id)
    const fresh = await startService({}, service.databaseUrl)
    try {
      for (const ended of [child, grandchild])
        expect((await fresh.sender(ended)('GET', '/v1/organization')).status).toBe(401)
    } finally {
      await fresh.stop()
    }
  })

  it('cannot outlive the token that makes it', async () => {
    const { key } = await service.organization()
    const parent = await makeToken(service.db, {
      organizationKey: key,
      subject: 'admin',
      scope: 'access:write',
      ttlSeconds: 100,
    })
    const reply = await service.sender(parent)('POST', '/v1/tokens', { scopes: ['access:write'], expires_in: 101 })
    expect([reply.status, reply.body.details?.map(({ path }) => path)]).toEqual([400, ['/expires_in']])
  })

  it('has Idempotency-Keys of its own, whatever its name', async () => {
    const { key } = await service.organization()
    const shop = await service.tokenFor(key, 'people:write', 'shop')
    const admin = await service.tokenFor(key, 'access:write people:write', 'admin')
    const child = await mint(admin, { ...expiry, name: 'shop', expires_in: 60 })
    const once = { 'Idempotency-Key': 'once' }
    expect(await statusOf(shop, once)).toBe(201)
    expect(await statusOf(child, once, 'Eve')).toBe(200)
    expect(await statusOf(child, once, 'Other')).toBe(422)
    expect(await statusOf(shop, once)).toBe(201)
  })
})

describe('a token of the list', () => {
  const expiry = { scopes: ['access:read', 'access:write'] as Scope[], expires_in: 3_600 }
  const statusOf = async ({ address }: Pick<Service, 'address'>, token: string) =>
    (await fetch(`${address}/v1/clients`, { headers: { Authorization: `Bearer ${token}` } })).status

  it('shows its name, maker, scopes and times, newest first, and never the token', async () => {
    const { client, send } = await service.organization()
    const { token, ...first } = await client.access.createToken({ ...expiry, name: 'Maria' })
    await client.access.createToken({ ...expiry, name: 'Report' })
    const { items } = await client.access.tokens.list().page()
    expect(items.map(({ name }) => name)).toEqual(['Report', 'Maria'])
    expect(items[1]).toEqual({
      ...first,
      maker: 'tests',
      created_at: expect.any(String),
      last_used_at: null,
      revoked_at: null,
    })
    expect(JSON.stringify((await send('GET', '/v1/tokens')).body)).not.toContain(token.split('.')[2]!)
    const page = await client.access.tokens.list({ size: 1 }).page()
    expect([page.has_more, page.items.length]).toEqual([true, 1])
    expect((await client.access.tokens.list({ after: page.next! }).page()).items.map(({ name }) => name)).toEqual([
      'Maria',
    ])
  })

  it('is refused once it is revoked, with those that were made with it and no other', async () => {
    const { client } = await service.organization()
    const made = await client.access.createToken({ ...expiry, name: 'Maria' })
    const other = await client.access.createToken({ ...expiry, name: 'Report' })
    const send = service.sender(made.token)
    const child = (await send('POST', '/v1/tokens', { ...expiry, name: 'child', expires_in: 60 })).body.data
    const grandchild = (
      await service.sender(child.token)('POST', '/v1/tokens', { ...expiry, name: 'next', expires_in: 30 })
    ).body.data
    expect(await client.access.tokens.revoke(made.jti)).toBe(true)
    const fresh = await startService({}, service.databaseUrl)
    try {
      for (const { token } of [made, child, grandchild]) expect(await statusOf(fresh, token)).toBe(401)
      expect(await statusOf(fresh, other.token)).toBe(200)
    } finally {
      await fresh.stop()
    }
    const { items } = await client.access.tokens.list().page()
    expect(items.map(({ name, revoked_at }) => [name, revoked_at !== null])).toEqual([
      ['next', true],
      ['child', true],
      ['Report', false],
      ['Maria', true],
    ])
    await expect(client.access.tokens.revoke(made.jti)).rejects.toMatchObject({ status: 404, code: 'not_found' })
  })

  it('belongs to its organization alone', async () => {
    const [one, other] = [await service.organization(), await service.organization()]
    const { jti, token } = await one.client.access.createToken({ ...expiry, name: 'Maria' })
    expect((await other.client.access.tokens.list().page()).items).toEqual([])
    expect((await other.client.access.tokens.list({ after: jti }).page()).items).toEqual([])
    await expect(other.client.access.tokens.revoke(jti)).rejects.toMatchObject({ status: 404 })
    expect(await statusOf(service, token)).toBe(200)
  })

  it('has a name of its own: none that looks like that of another client, session or token that is valid', async () => {
    const { id, key, client } = await service.organization()
    const { client_id } = await client.access.clients.create({ name: 'Shop sync', scopes: ['people:read'] })
    await startSession(service.db, { id, key }, { name: 'Grace', scope: 'people:read', method: 'code' })
    const maria = await client.access.createToken({ ...expiry, name: 'Maria' })
    const admin = service.sender(await service.tokenFor(key, 'access:write people:read', 'other admin'))
    const statusOfName = async (name: string) => {
      const { status, body } = await admin('POST', '/v1/tokens', { scopes: ['people:read'], expires_in: 60, name })
      return [name, status, body.details?.[0]?.path]
    }
    for (const name of ['Maria', 'maria', 'M\u0430ria', 'MAR\u00cdA', 'shop-sync', 'Gr\u0430ce'])
      expect(await statusOfName(name)).toEqual([name, 400, '/name'])
    // The maker of a token may make another one with the same name while the first is valid.
    expect((await client.access.createToken({ ...expiry, name: 'Maria' })).name).toBe('Maria')
    await client.access.tokens.revoke(maria.jti)
    expect(await statusOfName('Maria')).toEqual(['Maria', 400, '/name'])
    await client.access.clients.revoke(client_id)
    expect(await statusOfName('shop-sync')).toEqual(['shop-sync', 200, undefined])
  })

  it('takes its name once, if two callers ask at the same moment', async () => {
    const { key } = await service.organization()
    const admins = await Promise.all(['one', 'two', 'three'].map(name => service.tokenFor(key, 'access:write', name)))
    const body = { scopes: ['access:write'], expires_in: 60, name: 'Maria' }
    const replies = await Promise.all(admins.map(token => service.sender(token)('POST', '/v1/tokens', body)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400])
  })

  it('shows when it was last used, to the minute', async () => {
    const { id, client } = await service.organization()
    const { jti, token } = await client.access.createToken({ ...expiry, name: 'Maria' })
    const at = Date.parse('2026-01-01T12:34:56.789Z')
    const store = tokenUses(service.db, {
      usesSince: () => [{ organization_id: id, token_id: jti, usedAtMs: at }],
    })
    await store()
    const lastUse = async () => (await client.access.tokens.list().page()).items[0]!.last_used_at
    expect(await lastUse()).toBe('2026-01-01T12:34:00.000Z')
    expect(await statusOf(service, token)).toBe(200)
    await tokenUses(service.db, service.authenticator)()
    const used = (await lastUse())!
    expect([used.slice(-8), Date.now() - Date.parse(used) < 120_000]).toEqual([':00.000Z', true])
  })

  it('counts against the rate limit of whoever made it', async () => {
    const limited = await startService({ KITH_RATE_READ: '1', KITH_RATE_READ_BURST: '4' }, service.databaseUrl)
    try {
      const { client } = await service.organization()
      const { token } = await client.access.createToken({ ...expiry, name: 'Maria' })
      const child = (await service.sender(token)('POST', '/v1/tokens', { ...expiry, name: 'child', expires_in: 60 }))
        .body.data.token
      const statuses = []
      for (const each of [token, child, token, child, token, child, token, child])
        statuses.push(await statusOf(limited, each))
      expect(statuses.filter(status => status === 200).length).toBeLessThan(7)
      expect(statuses).toContain(429)
    } finally {
      await limited.stop()
    }
  })
})

it('GET /v1/keys shows only what is public of the signing keys', async () => {
  const { send, client } = await service.organization()
  const [key] = await client.access.keys()
  const jwks = (await (await fetch(`${service.address}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] }
  expect(key).toEqual({
    kid: jwks.keys[0]!.kid,
    algorithm: 'ES256',
    created_at: expect.any(String),
    state: 'signs',
    verifies_until: null,
  })
  const middle = await rotateKeys(service.db)
  await client.access.createToken({ scopes: ['people:read'], expires_in: 60 })
  const newest = await rotateKeys(service.db)
  await service.sql(`update signing_keys set vouches_until = now() - interval '1 second' where kid = $1`, [middle])
  const { items } = (await send('GET', '/v1/keys')).body.data
  expect(items.map(({ kid, state }: { kid: string; state: string }) => [kid, state])).toEqual([
    [newest, 'signs'],
    [middle, 'expired'],
    [key!.kid, 'verifies'],
  ])
  expect(items[2].verifies_until > new Date().toISOString()).toBe(true)
  expect(JSON.stringify(items)).not.toMatch(/"(d|private_jwk)"/)
})
