import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { type Credentials, createClient, revokeClient } from '../auth/clients.ts'

const service = useOwnService()
let organization: Organization
let client: Credentials

/** Each test has a separate client, because failures are counted per client. */
async function makeClient(scope = 'people:read people:write') {
  organization = await service.organization()
  client = await createClient(service.db, { organizationKey: organization.key, name: 'shop', scope })
  return client
}

type Form = { fields?: Record<string, string> | string; headers?: Record<string, string>; path?: string }

async function requestToken({ fields = {}, headers = {}, path = '/oauth/token' }: Form) {
  const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
  const response = await fetch(`${service.address}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body,
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came back
  const reply = (await response.json()) as any
  service.checkResponse({ method: 'POST', path, status: response.status, body: reply })
  return { status: response.status, headers: response.headers, body: reply }
}

const grant_type = 'client_credentials'
const basic = (client_id: string, secret: string) => ({
  Authorization: `Basic ${Buffer.from(`${encodeURIComponent(client_id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
})
const good = () => ({ grant_type, ...client })
const payloadOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())

describe('POST /oauth/token', () => {
  it.each([
    ['in the body', () => ({ fields: good() })],
    ['by HTTP Basic', () => ({ fields: { grant_type }, headers: basic(client.client_id, client.client_secret) })],
    [
      'by Basic, and its id in the body too',
      () => ({
        fields: { grant_type, client_id: client.client_id },
        headers: basic(client.client_id, client.client_secret),
      }),
    ],
  ])('gives a client that authenticates %s a valid token for an hour', async (_, form) => {
    await makeClient()
    const { status, headers, body } = await requestToken(form())
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3_600,
      scope: 'people:read people:write',
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('pragma')).toBe('no-cache')
    const { sub, client_id, org, iat, exp } = payloadOf(body.access_token)
    expect({ sub, client_id, org }).toEqual({
      sub: client.client_id,
      client_id: client.client_id,
      org: organization.key,
    })
    expect(exp - iat).toBe(3_600)
    const send = service.sender(body.access_token)
    expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
    expect((await send('GET', '/v1/schema')).status).toBe(403)
    const actors = await service.sql('select actor from changes where organization_id = $1', [organization.id])
    expect(actors).toEqual([{ actor: client.client_id }])
  })

  it('grants only the requested scope', async () => {
    await makeClient()
    const { body } = await requestToken({ fields: { ...good(), scope: 'people:read' } })
    expect(body.scope).toBe('people:read')
    const send = service.sender(body.access_token)
    expect((await send('POST', '/v1/people/list')).status).toBe(200)
    expect((await send('POST', '/v1/people', {})).status).toBe(403)
  })

  it('treats an unknown field and an empty field as absent', async () => {
    await makeClient()
    const { status, body } = await requestToken({ fields: { ...good(), scope: '', resource: 'x' } })
    expect([status, body.scope]).toEqual([200, 'people:read people:write'])
  })

  it.each([
    'people:admin',
    'records:read',
    'people:read records:read',
    'people:*',
    'people:read\tpeople:write',
    'PEOPLE:READ',
  ])('refuses the scope %j to a client with other scopes', async scope => {
    await makeClient()
    const { status, headers, body } = await requestToken({ fields: { ...good(), scope } })
    expect([status, body.error]).toEqual([400, 'invalid_scope'])
    expect(headers.get('cache-control')).toBe('no-store')
  })

  const malformed: [string, () => Form, string][] = [
    ['an empty body', () => ({ fields: '' }), 'invalid_request'],
    ['a missing grant_type', () => ({ fields: { ...client } }), 'invalid_request'],
    ['another grant_type', () => ({ fields: { ...good(), grant_type: 'password' } }), 'unsupported_grant_type'],
    [
      'a grant_type in other letters',
      () => ({ fields: { ...good(), grant_type: 'Client_Credentials' } }),
      'unsupported_grant_type',
    ],
    ['a field twice', () => ({ fields: `${new URLSearchParams(good())}&client_id=x` }), 'invalid_request'],
    ['an unknown field twice', () => ({ fields: `${new URLSearchParams(good())}&a=1&a=1` }), 'invalid_request'],
    [
      'JSON',
      () => ({ fields: JSON.stringify(good()), headers: { 'Content-Type': 'application/json' } }),
      'invalid_request',
    ],
    [
      'the form under another name',
      () => ({ fields: good(), headers: { 'Content-Type': 'text/plain' } }),
      'invalid_request',
    ],
    [
      'the secret in the address',
      () => ({ fields: { grant_type }, path: `/oauth/token?${new URLSearchParams(client)}` }),
      'invalid_request',
    ],
    ['anything in the address', () => ({ fields: good(), path: '/oauth/token?a=1' }), 'invalid_request'],
    [
      'both header and secret',
      () => ({ fields: good(), headers: basic(client.client_id, client.client_secret) }),
      'invalid_request',
    ],
    [
      'another client in the body than in the header',
      () => ({
        fields: { grant_type, client_id: 'other' },
        headers: basic(client.client_id, client.client_secret),
      }),
      'invalid_request',
    ],
  ]
  it.each(malformed)('refuses %s', async (_, form, error) => {
    await makeClient()
    const reply = await requestToken(form())
    expect([reply.status, reply.body.error]).toEqual([400, error])
    expect(reply.headers.get('www-authenticate')).toBeNull()
  })

  it('refuses every unknown client and wrong secret with the same response', async () => {
    const other = await makeClient()
    const { client_id, client_secret } = await makeClient()
    const wrong: Form[] = [
      { fields: { grant_type } },
      { fields: { grant_type, client_id } },
      { fields: { grant_type, client_id, client_secret: client_secret.slice(0, -1) } },
      { fields: { grant_type, client_id, client_secret: `${client_secret} ` } },
      { fields: { grant_type, client_id, client_secret: createHash('sha256').update(client_secret).digest('hex') } },
      { fields: { grant_type, client_id, client_secret: other.client_secret } },
      { fields: { grant_type, client_id: client_id.toUpperCase(), client_secret } },
      { fields: { grant_type, client_id: client_id.replace(/^\w+/, 'default'), client_secret } },
      { fields: { grant_type, client_id: client_id.replace(/^\w+/, 'nobody'), client_secret } },
      { fields: { grant_type, client_id: `${client_id}' or '1'='1`, client_secret } },
      { fields: { grant_type, client_id: 'x'.repeat(5_000), client_secret } },
      { fields: { grant_type, client_id: '\u0000', client_secret } },
      { fields: { grant_type }, headers: basic(client_id, other.client_secret) },
      { fields: { grant_type }, headers: { Authorization: `Bearer ${organization.token}` } },
      { fields: { grant_type }, headers: { Authorization: 'Basic' } },
      { fields: { grant_type }, headers: { Authorization: 'Basic !!!!' } },
      { fields: { grant_type }, headers: { Authorization: `Basic ${Buffer.from('nothing').toString('base64')}` } },
      { fields: { grant_type }, headers: { Authorization: `Basic ${Buffer.from([0xff, 0x3a]).toString('base64')}` } },
      { fields: { grant_type }, headers: { Authorization: `Basic ${Buffer.from('%:%').toString('base64')}` } },
    ]
    for (const form of wrong) {
      const { status, headers, body } = await requestToken(form)
      expect([status, headers.get('www-authenticate')], JSON.stringify(form)).toEqual([401, 'Basic realm="kith"'])
      expect(body).toEqual({
        error: 'invalid_client',
        error_description: 'The client is unknown or its secret is wrong.',
      })
    }
    expect((await requestToken({ fields: { grant_type, client_id, client_secret } })).status).toBe(200)
  })

  it('checks ten wrong secrets, also of thirty concurrent ones, and then throttles the client even with the right secret', async () => {
    const other = await makeClient()
    await makeClient()
    const wrong = { ...good(), client_secret: 'wrong' }
    const statuses = (await Promise.all(Array.from({ length: 30 }, () => requestToken({ fields: wrong })))).map(
      ({ status }) => status,
    )
    expect(statuses.filter(status => status === 401)).toHaveLength(10)
    expect(statuses.filter(status => status === 429)).toHaveLength(20)
    const { status, headers, body } = await requestToken({ fields: good() })
    expect([status, body.error]).toEqual([429, 'rate_limit_exceeded'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect((await requestToken({ fields: { grant_type, ...other } })).status).toBe(200)
  })

  it('does not count an attempt that fails with 500', async () => {
    await makeClient()
    await service.sql('alter table clients rename to clients_away')
    for (let index = 0; index < 11; index++) expect((await requestToken({ fields: good() })).status).toBe(500)
    await service.sql('alter table clients_away rename to clients')
    expect((await requestToken({ fields: good() })).status).toBe(200)
  })

  it('refuses a body that is too large for a token request', async () => {
    await makeClient()
    expect((await requestToken({ fields: { ...good(), scope: 'x'.repeat(20_000) } })).status).toBe(413)
  })

  it('supports only POST', async () => {
    const { status, headers } = await fetch(`${service.address}/oauth/token`)
    expect([status, headers.get('Allow')]).toEqual([405, 'POST'])
  })

  it('keeps secrets out of the log and of the database', async () => {
    await makeClient()
    await requestToken({ fields: good() })
    await requestToken({ fields: { grant_type }, headers: basic(client.client_id, client.client_secret) })
    await requestToken({ fields: { grant_type }, path: `/oauth/token?${new URLSearchParams(client)}` })
    expect(service.logs.join('')).not.toContain(client.client_secret)
    const rows = await service.sql('select t::text as text from clients t where organization_id = $1', [
      organization.id,
    ])
    expect(JSON.stringify(rows)).not.toContain(client.client_secret)
    expect(rows).toHaveLength(1)
  })
})

describe('a revoked client', () => {
  it('gets no more tokens', async () => {
    await makeClient()
    expect((await requestToken({ fields: good() })).status).toBe(200)
    await revokeClient(service.db, client.client_id)
    expect((await requestToken({ fields: good() })).body.error).toBe('invalid_client')
    await expect(revokeClient(service.db, client.client_id)).rejects.toThrow('does not exist')
  })
})
