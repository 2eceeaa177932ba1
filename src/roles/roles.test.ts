import { describe, expect, it } from 'vitest'
import { allScopes, useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useOwnService()
const shop = useShop(service, 'orders', 'city')
const { send, ok } = shop

const scopes = allScopes.split(' ')
const desk = { people: { read: ['attribute_values.city', 'first_name'], write: ['first_name'] } }
const createRole = (fields: unknown = desk, key = 'desk') => ok('POST', '/v1/roles', { key, scopes, fields })

/**
 * Returns a sender for a token with the role. It does not compare responses with the document, whose entities have all
 * members.
 */
async function senderOf(role = 'desk', name = `token of ${role}`) {
  const { token } = await ok('POST', '/v1/tokens', { scopes, role, name, expires_in: 600 })
  return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${service.address}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await jsonOf(response) }
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests read any field of a response
const jsonOf = async (response: Response) => (await response.json()) as any

describe('a role', () => {
  it('is created, read, changed and archived, and the log tells who did so', async () => {
    const created = await createRole()
    expect(created).toMatchObject({ key: 'desk', name: 'desk', scopes, fields: desk, state: 'active' })
    expect((await send('POST', '/v1/roles', { key: 'desk', scopes })).body.error).toBe('duplicate_entry')
    expect((await ok('PATCH', '/v1/roles/desk', { name: 'Support', fields: null })).fields).toBeNull()
    expect((await ok('GET', '/v1/roles')).items).toHaveLength(1)
    expect((await ok('GET', '/v1/roles/desk')).name).toBe('Support')
    expect((await send('GET', '/v1/roles/other')).status).toBe(404)
    const { items } = await ok('GET', '/v1/changes?subject=role')
    expect(items.map(({ operation, actor }: Record<string, string>) => [operation, actor])).toEqual([
      ['create', 'tests'],
      ['update', 'tests'],
    ])
  })

  it('names only owners that exist and fields that a read has, and writes only what it reads', async () => {
    for (const [fields, path] of [
      [{ nobody: { read: ['*'] } }, '/fields/nobody'],
      [{ people: { read: ['age'] } }, '/fields/people/read/age'],
      [{ orders: { read: ['first_name'] } }, '/fields/orders/read/first_name'],
      [{ people: { read: ['first_name'], write: ['email'] } }, '/fields/people/write/email'],
      [
        { people: { read: ['attribute_values.city'], write: ['attribute_values'] } },
        '/fields/people/write/attribute_values',
      ],
      [{ people: { read: ['first_name'], write: ['*'] } }, '/fields/people/write/*'],
    ] as const) {
      const { status, body } = await send('POST', '/v1/roles', { key: 'wrong', scopes, fields })
      expect([status, body.details!.map(detail => detail.path)]).toEqual([400, [path]])
    }
  })

  it('gives a caller the scopes that its credential and the role both have', async () => {
    await ok('POST', '/v1/roles', { key: 'reader', scopes: ['people:read'] })
    const ask = await senderOf('reader')
    expect((await ask('POST', '/v1/people/list', {})).status).toBe(200)
    expect((await ask('POST', '/v1/people', {})).status).toBe(403)
  })

  it('counts for the next request, and refuses everybody once it is archived', async () => {
    await createRole()
    await ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
    const ask = await senderOf()
    expect((await ask('GET', '/v1/people/ada')).body.data).not.toHaveProperty('last_name')
    await ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['last_name'] } } })
    const { data } = (await ask('GET', '/v1/people/ada')).body
    expect([data.last_name, data.first_name]).toEqual(['Lovelace', undefined])
    await ok('PATCH', '/v1/roles/desk', { state: 'archived' })
    expect((await ask('GET', '/v1/people/ada')).body.message).toContain('archived')
  })

  it('counts for the next read if another process changes it', async () => {
    await createRole()
    await ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
    const ask = await senderOf()
    expect((await ask('GET', '/v1/people/ada')).body.data.first_name).toBe('Ada')
    // Another process commits the change in this way, without notifying this one.
    const changeRole = (change: string) =>
      service.sql(
        `with changed as (update change_heads set schema_version = schema_version + 1 where organization_id = $1)
         update roles set ${change} where organization_id = $1`,
        [shop.id],
      )
    await changeRole(`fields = '{"people": {"read": ["last_name"], "write": []}}'`)
    const { data } = (await ask('GET', '/v1/people/ada')).body
    expect([data.last_name, data.first_name]).toEqual(['Lovelace', undefined])
    await changeRole(`scope = 'records:read'`)
    expect((await ask('GET', '/v1/people/ada')).status).toBe(403)
    await changeRole(`scope = 'people:read'`)
    expect((await ask('GET', '/v1/people/ada')).status).toBe(200)
    await changeRole(`state = 'archived'`)
    expect((await ask('GET', '/v1/people/ada')).status).toBe(403)
    expect((await ask('GET', '/v1/people/nobody')).status).toBe(403)
  })

  it('shows of a stored response to an Idempotency-Key what it opens now', async () => {
    await createRole({ people: { read: ['first_name', 'last_name'], write: ['first_name', 'last_name'] } })
    const ask = await senderOf()
    const create = () =>
      ask('POST', '/v1/people', { external_id: 'ada', first_name: 'A', last_name: 'L' }, { 'Idempotency-Key': 'one' })
    expect((await create()).body.data).toMatchObject({ first_name: 'A', last_name: 'L' })
    await ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['first_name'], write: ['first_name'] } } })
    const { status, body } = await create()
    expect([status, body.data.first_name, body.data.last_name]).toEqual([201, 'A', undefined])
    await ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['*'], write: ['first_name', 'last_name'] } } })
    expect((await create()).body.data).toMatchObject({ last_name: 'L', email: null })
  })

  it('refuses a write of a field that it closes at the path of the field, and stores nothing', async () => {
    await createRole()
    await ok('POST', '/v1/people', { external_id: 'ada' })
    const ask = await senderOf()
    const body = { first_name: 'Ada', email: 'ada@example.com', attribute_values: { city: 'Rome' } }
    const refused = await ask('PATCH', '/v1/people/ada', body)
    expect([refused.status, refused.body.details.map(({ path }: { path: string }) => path)]).toEqual([
      403,
      ['/email', '/attribute_values/city'],
    ])
    expect((await ask('PUT', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(403)
    expect((await ok('GET', '/v1/people/ada')).version).toBe(1)
    const operations = [
      { op: 'patch', external_id: 'ada', body: { first_name: 'Ada' } },
      { op: 'patch', external_id: 'ada', body: { email: 'ada@example.com' } },
    ]
    const { items } = (await ask('POST', '/v1/people/batch', { operations })).body.data
    expect(items.map(({ status }: { status: number }) => status)).toEqual([200, 403])
    expect(items[1].details[0].path).toBe('/operations/1/body/email')
  })

  it('finds people by a phone number only if it reads the prefix too, which the number may have', async () => {
    await createRole({ people: { read: ['mobile_number'] } }, 'half')
    await createRole({ people: { read: ['mobile_prefix', 'mobile_number'] } }, 'both')
    await ok('POST', '/v1/people', { external_id: 'ada', mobile_prefix: '39', mobile_number: '3337654321' })
    const ask = await senderOf('half')
    const refused = await ask('POST', '/v1/people/lookup', { mobile_number: '+39 333 7654321' })
    expect([refused.status, refused.body.details[0].path]).toEqual([403, '/mobile_prefix'])
    const asked = await (await senderOf('both'))('POST', '/v1/people/lookup', { mobile_number: '+39 333 7654321' })
    expect(asked.body.data.items).toHaveLength(1)
  })

  it('repeats an event by the fields that it may write, whatever the closed ones are', async () => {
    await ok('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    for (const key of ['page', 'note'])
      await ok('POST', '/v1/schema/attributes', { owner: 'visits', key, type: 'text' })
    await createRole({ visits: { read: ['attribute_values.page'], write: ['attribute_values.page'] } })
    await ok('POST', '/v1/stacks/visits', { external_id: 'plain', attribute_values: { page: 'a' } })
    await ok('POST', '/v1/stacks/visits', { external_id: 'noted', attribute_values: { page: 'a', note: 'b' } })
    const ask = await senderOf()
    for (const external_id of ['plain', 'noted'])
      for (const [page, status] of [
        ['a', 200],
        ['b', 409],
      ] as const)
        expect((await ask('POST', '/v1/stacks/visits', { external_id, attribute_values: { page } })).status).toBe(
          status,
        )
    const again = { external_id: 'noted', attribute_values: { page: 'a' } }
    expect((await send('POST', '/v1/stacks/visits', again)).status).toBe(409)
  })

  it('shows and cancels no job of a stack that it closes', async () => {
    await createRole()
    const change = { op: 'patch', body: { attribute_values: { total: 1 } } }
    const job = await ok('POST', '/v1/stacks/orders/bulk', { filter: {}, change })
    const own = await ok('POST', '/v1/people/bulk', { filter: {}, change: { op: 'patch', body: { first_name: 'A' } } })
    const ask = await senderOf()
    expect((await ask('GET', '/v1/jobs')).body.data.items.map(({ id }: { id: string }) => id)).toEqual([own.id])
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/refused'],
      ['POST', '/cancel'],
    ] as const)
      expect((await ask(method, `/v1/jobs/${job.id}${path}`)).status).toBe(403)
    expect((await ask('GET', `/v1/jobs/${own.id}`)).status).toBe(200)
  })

  it('refuses a filter, a sort and a page that name a field that it closes, at its place', async () => {
    await createRole()
    await ok('POST', '/v1/segments', { key: 'old', filter: { date_of_birth: { $lt: '1950-01-01' } } })
    const ask = await senderOf()
    for (const [body, path] of [
      [{ filter: { $or: [{ email: 'a@b.example' }] } }, '/filter/$or/0/email'],
      [{ filter: { $segment: 'old' } }, '/filter/$segment'],
      [{ filter: {}, sort: { field: 'last_name' } }, '/sort/field'],
      [{ filter: {}, fields: ['first_name', 'email'] }, '/fields/1'],
    ] as const) {
      const { status, body: answer } = await ask('POST', '/v1/people/filter', body)
      expect([status, answer.details[0].path]).toEqual([403, path])
    }
    expect((await ask('POST', '/v1/stacks/orders/list', {})).status).toBe(403)
  })

  it('is given only by those who have what it opens', async () => {
    await createRole()
    await ok('POST', '/v1/roles', { key: 'all', scopes })
    const ask = await senderOf()
    const request = { scopes: ['people:read'], name: 'next', expires_in: 60 }
    expect((await ask('POST', '/v1/tokens', { ...request, role: 'all' })).body.details[0].path).toBe('/role')
    expect((await ask('POST', '/v1/tokens', request)).body.data.role).toBe('desk')
    expect((await ask('POST', '/v1/clients', { name: 'x', scopes: ['people:read'] })).body.data.role).toBe('desk')
    expect((await ask('PATCH', '/v1/roles/desk', { fields: null })).status).toBe(403)
    expect((await ask('POST', '/v1/roles', { key: 'mine', scopes })).status).toBe(403)
    expect((await send('POST', '/v1/tokens', { ...request, role: 'nobody' })).body.details![0]!.path).toBe('/role')
    const reader = service.sender(await service.tokenFor(shop.key, 'access:write people:read', 'narrow'))
    expect((await reader('POST', '/v1/roles', { key: 'wide', scopes })).status).toBe(400)
    for (const [patch, status] of [
      [{ fields: null }, 400],
      [{ scopes: ['people:read'] }, 200],
      [{ fields: null, name: 'open' }, 200],
      [{ state: 'archived' }, 200],
    ] as const)
      expect((await reader('PATCH', '/v1/roles/desk', patch)).status).toBe(status)
    await send('PATCH', '/v1/roles/desk', { scopes })
    expect((await reader('PATCH', '/v1/roles/desk', { state: 'active' })).status).toBe(400)
    expect((await reader('PATCH', '/v1/roles/desk', { name: 'closed' })).status).toBe(200)
  })

  it('closes the events of a stream, which ends when the role is archived', async () => {
    await createRole()
    const request = { scopes, role: 'desk', name: 'follower', expires_in: 600 }
    const { token } = await ok('POST', '/v1/tokens', request)
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
    const response = await fetch(`${service.address}/v1/changes?subject=person`, { headers })
    await ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      if (text.includes('Ada') && !text.includes('archived')) {
        await ok('PATCH', '/v1/roles/desk', { state: 'archived' })
        text += 'archived'
      }
    }
    expect(text).toContain('"first_name":"Ada"')
    expect(text).not.toContain('Lovelace')
  })

  it('is that of a client in its tokens and its sessions', async () => {
    await createRole()
    await ok('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com' })
    const { client_id, client_secret } = await ok('POST', '/v1/clients', { name: 'Desk', scopes, role: 'desk' })
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
    const { access_token } = await jsonOf(await fetch(`${service.address}/oauth/token`, { method: 'POST', body: form }))
    const headers = { Authorization: `Bearer ${access_token}` }
    const person = await jsonOf(await fetch(`${service.address}/v1/people/ada`, { headers }))
    expect([person.data.external_id, person.data.email]).toEqual(['ada', undefined])
    const signIn = await fetch(`${service.address}/console/session`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Origin: service.address },
      body: JSON.stringify({ client_id, client_secret }),
    })
    const cookie = signIn.headers.get('Set-Cookie')!.split(';')[0]!
    const session = await fetch(`${service.address}/console/session`, {
      headers: { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin' },
    })
    expect((await jsonOf(session)).data).toMatchObject({ role: 'desk' })
    const shown = await fetch(`${service.address}/v1/people/ada`, {
      headers: { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin' },
    })
    expect((await jsonOf(shown)).data).not.toHaveProperty('email')
  })
})
