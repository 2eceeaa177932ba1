import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Organization, type Service, startService } from '../../../test/support/service.ts'
import { type Credentials, createClient, revokeClient } from '../../auth/clients.ts'

let service: Service
let organization: Organization
let client: Credentials
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

/** Every test has a client of its own: failures are counted by it. */
async function makeClient(scope = 'people:read people:write') {
  organization = await service.organization()
  client = await createClient(service.db, { organizationKey: organization.key, name: 'shop', scope })
  return client
}

type Asked = { fields?: Record<string, string> | string; headers?: Record<string, string>; path?: string }

async function ask({ fields = {}, headers = {}, path = '/oauth/token' }: Asked) {
  const form = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
  const response = await fetch(`${service.address}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body: form,
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came back
  const body = (await response.json()) as any
  service.hold({ method: 'POST', path, status: response.status, body })
  return { status: response.status, headers: response.headers, body }
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
  ])('gives a client that says who it is %s a token for an hour, which works', async (_, asked) => {
    await makeClient()
    const { status, headers, body } = await ask(asked())
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

  it('gives no more than is asked for', async () => {
    await makeClient()
    const { body } = await ask({ fields: { ...good(), scope: 'people:read' } })
    expect(body.scope).toBe('people:read')
    const send = service.sender(body.access_token)
    expect((await send('POST', '/v1/people/list')).status).toBe(200)
    expect((await send('POST', '/v1/people', {})).status).toBe(403)
  })

  it('takes a field that it does not know, and one without a value, for absent', async () => {
    await makeClient()
    const { status, body } = await ask({ fields: { ...good(), scope: '', resource: 'x' } })
    expect([status, body.scope]).toEqual([200, 'people:read people:write'])
  })

  it.each([
    'people:admin',
    'records:read',
    'people:read records:read',
    'people:*',
    'people:read\tpeople:write',
    'PEOPLE:READ',
  ])('refuses the scope %j to a client that has others', async scope => {
    await makeClient()
    const { status, headers, body } = await ask({ fields: { ...good(), scope } })
    expect([status, body.error]).toEqual([400, 'invalid_scope'])
    expect(headers.get('cache-control')).toBe('no-store')
  })

  const malformed: [string, () => Asked, string][] = [
    ['no body', () => ({ fields: '' }), 'invalid_request'],
    ['no grant_type', () => ({ fields: { ...client } }), 'invalid_request'],
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
  it.each(malformed)('refuses %s', async (_, asked, error) => {
    await makeClient()
    const reply = await ask(asked())
    expect([reply.status, reply.body.error]).toEqual([400, error])
    expect(reply.headers.get('www-authenticate')).toBeNull()
  })

  it('refuses everybody whom it does not know in one and the same way', async () => {
    const other = await makeClient()
    const { client_id, client_secret } = await makeClient()
    const wrong: Asked[] = [
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
    for (const asked of wrong) {
      const { status, headers, body } = await ask(asked)
      expect([status, headers.get('www-authenticate')], JSON.stringify(asked)).toEqual([401, 'Basic realm="kith"'])
      expect(body).toEqual({
        error: 'invalid_client',
        error_description: 'The client is unknown or its secret is wrong.',
      })
    }
    expect((await ask({ fields: { grant_type, client_id, client_secret } })).status).toBe(200)
  })

  it('lets ten wrong secrets through, also of thirty at once; then the client waits there, and the right one too', async () => {
    const other = await makeClient()
    await makeClient()
    const wrong = { ...good(), client_secret: 'wrong' }
    const statuses = (await Promise.all(Array.from({ length: 30 }, () => ask({ fields: wrong })))).map(
      ({ status }) => status,
    )
    expect(statuses.filter(status => status === 401)).toHaveLength(10)
    expect(statuses.filter(status => status === 429)).toHaveLength(20)
    const { status, headers, body } = await ask({ fields: good() })
    expect([status, body.error]).toEqual([429, 'rate_limit_exceeded'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect((await ask({ fields: { grant_type, ...other } })).status).toBe(200)
  })

  it('does not count an attempt that could not be decided', async () => {
    await makeClient()
    await service.sql('alter table clients rename to clients_away')
    for (let index = 0; index < 11; index++) expect((await ask({ fields: good() })).status).toBe(500)
    await service.sql('alter table clients_away rename to clients')
    expect((await ask({ fields: good() })).status).toBe(200)
  })

  it('refuses a body that is no form of a token', async () => {
    await makeClient()
    expect((await ask({ fields: { ...good(), scope: 'x'.repeat(20_000) } })).status).toBe(413)
  })

  it('is answered at POST alone', async () => {
    const { status, headers } = await fetch(`${service.address}/oauth/token`)
    expect([status, headers.get('Allow')]).toEqual([405, 'POST'])
  })

  it('keeps secrets out of the log and of the database', async () => {
    await makeClient()
    await ask({ fields: good() })
    await ask({ fields: { grant_type }, headers: basic(client.client_id, client.client_secret) })
    await ask({ fields: { grant_type }, path: `/oauth/token?${new URLSearchParams(client)}` })
    expect(service.logs.join('')).not.toContain(client.client_secret)
    const rows = await service.sql('select t::text as text from clients t where organization_id = $1', [
      organization.id,
    ])
    expect(JSON.stringify(rows)).not.toContain(client.client_secret)
    expect(rows).toHaveLength(1)
  })
})

describe('a client that is revoked', () => {
  it('gets no more tokens', async () => {
    await makeClient()
    expect((await ask({ fields: good() })).status).toBe(200)
    await revokeClient(service.db, client.client_id)
    expect((await ask({ fields: good() })).body.error).toBe('invalid_client')
    await expect(revokeClient(service.db, client.client_id)).rejects.toThrow('no client')
  })
})
