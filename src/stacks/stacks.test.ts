import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const organization = useShop(service)
const { send } = organization

const path = '/v1/schema/stacks'
const listed = async () => (await send('GET', path)).body.data.items
/** The stored definitions: the stacks, the number of logged changes, and the version. */
const stored = async () => ({
  items: await listed(),
  head: await service.sql('select sequence, schema_version from change_heads where organization_id = $1', [
    organization.id,
  ]),
})
const longest = `a${'_9'.repeat(31)}`

describe('a stack', () => {
  it('is created from key and kind, named after its key, and found at its Location', async () => {
    const created = await send('POST', path, { key: 'orders', kind: 'item' })
    expect([created.status, created.headers.get('location')]).toEqual([201, `${path}/orders`])
    const { created_at, updated_at, ...rest } = created.body.data
    expect(rest).toEqual({
      key: 'orders',
      name: 'orders',
      kind: 'item',
      retention_days: null,
      label: null,
      summary: null,
      erased_with: null,
    })
    expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(updated_at).toBe(created_at)
    expect((await send('GET', `${path}/orders`)).body.data).toEqual(created.body.data)
  })

  it('can be of kind event and can have its own name, which is trimmed', async () => {
    const reply = await send('POST', path, { key: 'visits', kind: 'event', name: '  Visits to us ' })
    expect(reply.body.data).toMatchObject({ kind: 'event', name: 'Visits to us' })
  })

  it('has a key of 1 to 63 characters', async () => {
    for (const key of ['a', longest]) expect((await send('POST', path, { key, kind: 'item' })).status).toBe(201)
  })

  it('can be created from query parameters', async () => {
    expect((await send('POST', `${path}?key=visits&kind=event`)).status).toBe(201)
  })

  it('is listed in the order of creation', async () => {
    for (const key of ['zebras', 'apples', 'mangos']) await send('POST', path, { key, kind: 'item' })
    expect((await listed()).map((stack: { key: string }) => stack.key)).toEqual(['zebras', 'apples', 'mangos'])
  })

  it('can be renamed, and keeps its key, kind and time of creation', async () => {
    const { data } = (await send('POST', path, { key: 'orders', kind: 'item' })).body
    const patched = await send('PATCH', `${path}/orders`, { name: 'Orders' })
    expect(patched.status).toBe(200)
    expect(patched.body.data).toEqual({ ...data, name: 'Orders', updated_at: patched.body.data.updated_at })
    expect(await listed()).toEqual([patched.body.data])
  })

  it('of kind event has a retention in days, which PATCH changes and null ends', async () => {
    const created = await send('POST', path, { key: 'visits', kind: 'event', retention_days: 36_500 })
    expect(created.body.data.retention_days).toBe(36_500)
    expect((await send('PATCH', `${path}/visits`, { retention_days: 30 })).body.data.retention_days).toBe(30)
    expect((await send('PATCH', `${path}/visits`, { name: 'Visits' })).body.data.retention_days).toBe(30)
    expect((await send('PATCH', `${path}/visits`, { retention_days: null })).body.data.retention_days).toBeNull()
    const { items } = (await send('GET', '/v1/changes?subject=stack')).body.data
    expect(items.map((change: { after: object }) => change.after)).toEqual([
      {
        key: 'visits',
        name: 'visits',
        kind: 'event',
        retention_days: 36_500,
        label: null,
        summary: null,
        erased_with: null,
      },
      { retention_days: 30 },
      { name: 'Visits' },
      { retention_days: null },
    ])
    expect(items[1].before).toEqual({ retention_days: 36_500 })
  })

  it('has a label: a template of its attributes, which PATCH changes and null ends', async () => {
    const label = 'Order {number} of {buyer.email} ({buyer.city}, {buyer})'
    const created = await send('POST', path, { key: 'orders', kind: 'item', label: ' {number} ' })
    expect(created.body.data.label).toBe('{number}')
    for (const [owner, key, type] of [
      ['orders', 'number', 'text'],
      ['orders', 'buyer', 'person'],
      ['people', 'city', 'text'],
    ])
      await organization.ok('POST', '/v1/schema/attributes', { owner, key, type })
    expect((await send('PATCH', `${path}/orders`, { label })).body.data.label).toBe(label)
    expect((await send('PATCH', `${path}/orders`, { name: 'Orders' })).body.data.label).toBe(label)
    expect((await send('PATCH', `${path}/orders`, { label: null })).body.data.label).toBeNull()
    const { items } = (await send('GET', '/v1/changes?subject=stack')).body.data
    const changes = items.map(({ before, after }: Record<string, object>) => [before, after])
    expect(changes.slice(1)).toEqual([
      [{ label: '{number}' }, { label }],
      [{ name: 'orders' }, { name: 'Orders' }],
      [{ label }, { label: null }],
    ])
  })

  it('can have the label of an attribute that was archived since, but takes no new one', async () => {
    await organization.ok('POST', path, { key: 'orders', kind: 'item' })
    const attribute = { owner: 'orders', key: 'number', type: 'text' }
    const { id } = await organization.ok('POST', '/v1/schema/attributes', attribute)
    await organization.ok('PATCH', `${path}/orders`, { label: '{number}' })
    await organization.ok('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect((await send('PATCH', `${path}/orders`, { label: '{number}', name: 'Orders' })).status).toBe(200)
    expect((await send('PATCH', `${path}/orders`, { label: '{number}!' })).status).toBe(400)
  })

  it.each([
    ['', 'must not be empty'],
    ['x'.repeat(201), 'characters'],
    ['Order', 'must name an attribute'],
    ['{number', 'single brace'],
    ['{number or total}', 'is neither'],
    ['{total}', 'names {total}, which is not a declared attribute of the stack'],
    ['{number.total}', 'is not a relationship'],
    ['{buyer.total}', 'is not a declared attribute of the target'],
    ['{buyer.language}', 'is not a declared attribute of the target'],
    ['{buyer.friend}', 'follows one relationship only'],
    ['{extra}', 'has JSON'],
    ['{buyer.extra}', 'has JSON'],
  ])('with the label %j is 400: %s', async (label, message) => {
    await organization.ok('POST', path, { key: 'orders', kind: 'item' })
    for (const [owner, key, type] of [
      ['orders', 'number', 'text'],
      ['orders', 'extra', 'json'],
      ['orders', 'buyer', 'person'],
      ['people', 'friend', 'person'],
      ['people', 'extra', 'json'],
    ])
      await organization.ok('POST', '/v1/schema/attributes', { owner, key, type })
    const before = await stored()
    const { status, body } = await send('PATCH', `${path}/orders`, { label })
    expect([status, body.details?.[0]]).toEqual([400, { path: '/label', message: expect.stringContaining(message) }])
    expect(await stored()).toEqual(before)
  })

  it.each([{}, { name: 'orders' }, { retention_days: null }, { label: null }])(
    'is not written by a PATCH with %j, which changes nothing',
    async body => {
      await send('POST', path, { key: 'orders', kind: 'item' })
      const before = await stored()
      const reply = await send('PATCH', `${path}/orders`, body)
      expect([reply.status, reply.body.data]).toEqual([200, before.items[0]])
      expect(await stored()).toEqual(before)
    },
  )

  it('exists once after ten concurrent requests to create it, nine of which get 409', async () => {
    const requests = Array.from({ length: 10 }, () => send('POST', path, { key: 'orders', kind: 'item' }))
    const replies = await Promise.all(requests)
    expect(replies.map(reply => reply.status).sort()).toEqual([201, ...Array(9).fill(409)])
    expect(await listed()).toHaveLength(1)
  })
})

describe('an invalid request for stacks', () => {
  const kind = 'item'
  it.each([
    [{ kind }, 400, 'invalid_parameter', '/key'],
    [{ key: 'visits' }, 400, 'invalid_parameter', '/kind'],
    [{ key: 'visits', kind: 'thing' }, 400, 'invalid_parameter', '/kind'],
    [{ key: 'visits', kind: 'Item' }, 400, 'invalid_parameter', '/kind'],
    [{ key: 'people', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: '', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: 'Visits', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: '1visit', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: '_visit', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: 'vi-sit', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: 'vísits', kind }, 400, 'invalid_parameter', '/key'],
    [{ key: `${longest}x`, kind }, 400, 'invalid_parameter', '/key'],
    [{ key: 7, kind }, 400, 'invalid_json', '/key'],
    [{ key: 'visits', kind: null }, 400, 'invalid_json', '/kind'],
    [{ key: 'visits', kind, name: ' ' }, 400, 'invalid_parameter', '/name'],
    [{ key: 'visits', kind, name: 'x'.repeat(256) }, 400, 'invalid_parameter', '/name'],
    [{ key: 'visits', kind, name: null }, 400, 'invalid_json', '/name'],
    [{ key: 'visits', kind, state: 'archived' }, 400, 'invalid_parameter', '/state'],
    [{ key: 'visits', kind, retention_days: 30 }, 400, 'invalid_parameter', '/retention_days'],
    [{ key: 'visits', kind: 'event', retention_days: 0 }, 400, 'invalid_parameter', '/retention_days'],
    [{ key: 'visits', kind: 'event', retention_days: 36_501 }, 400, 'invalid_parameter', '/retention_days'],
    [{ key: 'visits', kind: 'event', retention_days: '30' }, 400, 'invalid_json', '/retention_days'],
    [{ key: 'visits', kind, label: 'Visit' }, 400, 'invalid_parameter', '/label'],
    [{ key: 'visits', kind, label: 7 }, 400, 'invalid_json', '/label'],
    [{ key: 'orders', kind: 'event' }, 409, 'duplicate_entry', '/key'],
  ])('POST with %j returns %i %s at %s and changes nothing', async (body, status, code, where) => {
    await send('POST', path, { key: 'orders', kind })
    const before = await stored()
    const reply = await send('POST', path, body)
    expect([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)]).toEqual([
      status,
      code,
      [where],
    ])
    expect(await stored()).toEqual(before)
  })

  it.each([
    [{ key: 'visits' }, '/key'],
    [{ kind: 'event' }, '/kind'],
    [{ kind: 'item' }, '/kind'],
    [{ name: '' }, '/name'],
    [{ name: 'x'.repeat(256) }, '/name'],
    [{ created_at: '2026-01-01T00:00:00Z' }, '/created_at'],
    [{ retention_days: 30 }, '/retention_days'],
    [{ retention_days: 0 }, '/retention_days'],
  ])('PATCH with %j returns 400 at %s and changes nothing', async (body, where) => {
    await send('POST', path, { key: 'orders', kind })
    const before = await stored()
    const reply = await send('PATCH', `${path}/orders`, body)
    expect([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)]).toEqual([
      400,
      'invalid_parameter',
      [where],
    ])
    expect(await stored()).toEqual(before)
  })

  it.each([
    ['GET', `${path}/nothing`, 404],
    ['PATCH', `${path}/nothing`, 404],
    ['GET', `${path}/people`, 404],
    ['PUT', `${path}/orders`, 405],
    ['DELETE', `${path}/orders`, 405],
    ['DELETE', path, 405],
  ])('%s %s returns %i and changes nothing', async (method, address, status) => {
    await send('POST', path, { key: 'orders', kind })
    const before = await stored()
    expect((await send(method, address, method === 'GET' ? undefined : { name: 'x' })).status).toBe(status)
    expect(await stored()).toEqual(before)
  })
})

it('creating a stack needs only schema:write, and reading it needs only schema:read', async () => {
  const reader = service.sender(await service.tokenFor(organization.key, 'schema:read people:write'))
  const writer = service.sender(await service.tokenFor(organization.key, 'schema:write'))
  const body = { key: 'orders', kind: 'item' }
  expect((await reader('POST', path, body)).status).toBe(403)
  expect(await listed()).toEqual([])
  expect((await writer('POST', path, body)).status).toBe(201)
  expect((await reader('PATCH', `${path}/orders`, { name: 'x' })).status).toBe(403)
  expect((await reader('GET', `${path}/orders`)).body.data.name).toBe('orders')
  expect((await writer('GET', path)).status).toBe(403)
})
