import { beforeAll, describe, expect, it } from 'vitest'
import { readPageIds } from '../../../test/support/filtered-pages.ts'
import { type Send, useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'

const service = useOwnService()
const organization = useSharedShop(service, 'bought')
const { send } = organization
beforeAll(async () => {
  for (let index = 0; index < 5; index += 1)
    await send('POST', '/v1/people', {
      external_id: `p${index}`,
      attribute_values: { bought: ['shared', `o${index}`] },
    })
})

const names = (reply: Awaited<ReturnType<Send>>) =>
  reply.body.data.items.map((item: { external_id: string }) => item.external_id)

const reading = ['/v1/people/list', '/v1/people/filter', '/v1/stacks/orders/list', '/v1/stacks/orders/filter']

describe.each(reading)('POST %s', path => {
  it('returns at most 50 items, newest first, without a body', async () => {
    const reply = await send('POST', path)
    expect(reply.status).toBe(200)
    expect(reply.body.data.has_more).toBe(false)
    const ids = reply.body.data.items.map((item: { id?: string; record_id?: string }) => item.id ?? item.record_id)
    expect(ids).toEqual(ids.toSorted().reverse())
    expect(ids.length).toBeGreaterThan(4)
  })

  it.each([0, 501, 1.5, -1])('refuses a size of %d instead of clamping it', async size => {
    const reply = await send('POST', path, { cursor_configuration: { size } })
    expect(reply.status).toBe(400)
    expect(reply.body.details![0]!.path).toBe('/cursor_configuration/size')
  })

  it.each([1, 500])('accepts a size of %d', async size => {
    expect((await send('POST', path, { cursor_configuration: { size } })).status).toBe(200)
  })

  it('refuses a malformed cursor', async () => {
    const reply = await send('POST', path, { cursor_configuration: { after_id: 'p1' } })
    expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
    expect(reply.body.details![0]!.path).toBe('/cursor_configuration/after_id')
  })
})

it('a page continues after the item that the cursor names', async () => {
  const first = await send('POST', '/v1/people/list', { sorting_type: 'asc', cursor_configuration: { size: 3 } })
  expect(first.body.data.has_more).toBe(true)
  const after_id = first.body.data.items[2].id.toUpperCase()
  const second = await send('POST', '/v1/people/list', {
    sorting_type: 'asc',
    cursor_configuration: { size: 3, after_id },
  })
  expect([...names(first), ...names(second)]).toEqual(['p0', 'p1', 'p2', 'p3', 'p4'])
})

it('a filter sees earlier writes and declarations at once', async () => {
  await send('POST', '/v1/people', { external_id: 'own', attribute_values: { mood: 'calm' } })
  await send('POST', '/v1/schema/attributes', { key: 'mood', owner: 'people', type: 'text', indexed: true })
  await backfillIndexes(service.db)
  await send('PATCH', '/v1/people/own', { attribute_values: { mood: 'merry' } })
  const filter = { 'attribute_values.mood': 'merry' }
  expect(names(await send('POST', '/v1/people/filter', { filter }))).toEqual(['own'])
  await send('DELETE', '/v1/people/own')
  expect(names(await send('POST', '/v1/people/filter', { filter }))).toEqual([])
})

it('a filter is refused with the path of its fault', async () => {
  const reply = await send('POST', '/v1/people/filter', { filter: { $or: [{}, { nobody: 1 }] } })
  expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
  expect(reply.body.details![0]!.path).toBe('/filter/$or/1/nobody')
})

it('a filter through a relationship also needs the read scope of the target', async () => {
  const onlyPeople = service.sender(await service.tokenFor(organization.key, 'people:read'))
  const plain = { 'attribute_values.bought': 'o1' }
  expect(names(await onlyPeople('POST', '/v1/people/filter', { filter: plain }))).toEqual(['p1'])
  const filter = { 'attribute_values.bought': { $some: { external_id: 'o1' } } }
  expect(names(await send('POST', '/v1/people/filter', { filter }))).toEqual(['p1'])
  const refused = await onlyPeople('POST', '/v1/people/filter', { filter })
  expect(refused).toMatchObject({ status: 403, body: { error: 'forbidden' } })
  expect(refused.headers.get('www-authenticate')).toContain('error="insufficient_scope", scope="records:read"')
})

it('a relationship equals the whole array of its names, even next to another operator', async () => {
  await backfillIndexes(service.db)
  const filter = { 'attribute_values.bought': { $eq: ['shared', 'o1'], $gte: 'o' } }
  expect(names(await send('POST', '/v1/people/filter', { filter }))).toEqual(['p1'])
})

it('related lists the orders of a person and the people of an order, by either identifier', async () => {
  const orders = await send('POST', '/v1/people/p1/related', { target: 'orders' })
  expect(names(orders).sort()).toEqual(['o1', 'shared'])
  expect(orders.body.data.items[0].stack_key).toBe('orders')
  const { record_id } = (await send('GET', '/v1/stacks/orders/shared')).body.data
  const body = { target: 'people', sorting_type: 'asc', attribute_key: 'bought', direction: 'incoming' }
  const people = await send('POST', `/v1/stacks/orders/internal/${record_id}/related`, body)
  expect(names(people)).toEqual(['p0', 'p1', 'p2', 'p3', 'p4'])
  const cursor_configuration = { size: 2, after_id: people.body.data.items[1].id }
  expect(names(await send('POST', '/v1/stacks/orders/shared/related', { ...body, cursor_configuration }))).toEqual([
    'p2',
    'p3',
  ])
  expect(names(await send('POST', '/v1/people/p1/related', { target: 'people' }))).toEqual([])
})

it.each([
  ['/v1/people/nobody/related', { target: 'people' }, 404, undefined],
  ['/v1/people/nobody/related', { target: 'nothing' }, 404, undefined],
  ['/v1/people/nobody/related', { target: 'orders', attribute_key: 'nothing' }, 404, undefined],
  ['/v1/people/p1/related', {}, 400, '/target'],
  ['/v1/people/p1/related', { target: 'nothing' }, 400, '/target'],
  ['/v1/people/p1/related', { target: 'orders', attribute_key: 'nothing' }, 400, '/attribute_key'],
  [
    '/v1/people/p1/related',
    { target: 'orders', direction: 'incoming', attribute_key: 'bought' },
    400,
    '/attribute_key',
  ],
  [
    '/v1/people/p1/related',
    { target: 'orders', cursor_configuration: { after_id: 'x' } },
    400,
    '/cursor_configuration/after_id',
  ],
  [
    '/v1/people/p1/related',
    { target: 'orders', cursor_configuration: { size: 501 } },
    400,
    '/cursor_configuration/size',
  ],
])('POST %s with %j returns %i', async (path, body, status, pointer) => {
  const reply = await send('POST', path, body)
  expect(reply.status).toBe(status)
  expect(reply.body.details?.[0]?.path).toBe(pointer)
})

it('related needs the read scope of the target', async () => {
  const onlyPeople = service.sender(await service.tokenFor(organization.key, 'people:read'))
  expect((await onlyPeople('POST', '/v1/people/p1/related', { target: 'orders' })).status).toBe(403)
  expect((await onlyPeople('POST', '/v1/people/p1/related', { target: 'people' })).status).toBe(200)
})

it('a process with outdated definitions still filters by the current ones', async () => {
  const { send, id } = await service.organization()
  const ada = await send('POST', '/v1/people', { external_id: 'a', attribute_values: { city: 'Rome' } })
  const adaId = ada.body.data.id
  // A second handle keeps its own snapshot of the definitions, like a second process.
  const other = { ...service.db }
  const found = async (filter: unknown) =>
    (await readPageIds(other, id, { stack_id: 0, filter, position: { direction: 'asc', size: 5 } })).ids
  const byCity = { 'attribute_values.city': 'Rome' }
  const byFriend = { 'attribute_values.friend': { $some: {} } }
  expect(await found(byCity)).toEqual([adaId])
  await expect(found(byFriend)).rejects.toThrow('The filter is invalid')
  await send('POST', '/v1/schema/attributes', { key: 'friend', owner: 'people', type: 'person' })
  const city = await send('POST', '/v1/schema/attributes', {
    key: 'city',
    owner: 'people',
    type: 'text',
    indexed: true,
  })
  await backfillIndexes(service.db)
  expect(await found(byFriend)).toEqual([])
  expect(await found(byCity)).toEqual([adaId])
  await send('PATCH', `/v1/schema/attributes/${city.body.data.id}`, { indexed: false })
  await backfillIndexes(service.db)
  expect(await found(byCity)).toEqual([adaId])
})

it('a text operator compares every form of the Greek sigma as one letter', async () => {
  const { send } = await service.organization()
  for (const last_name of ['ΟΔΟΣΑΛ', 'οδοσ', 'Οδυσσέας', 'οδος', 'Όμηρος'])
    await send('POST', '/v1/people', { external_id: last_name, last_name, attribute_values: { last_name } })
  for (const [test, ...expected] of [
    [{ $starts_with: 'ΟΔΟΣ' }, 'ΟΔΟΣΑΛ', 'οδοσ', 'οδος'],
    [{ $starts_with: 'οδος' }, 'ΟΔΟΣΑΛ', 'οδοσ', 'οδος'],
    [{ $starts_with: 'ΟΔΥΣ' }, 'Οδυσσέας'],
    [{ $contains: 'ΔΥς' }, 'Οδυσσέας'],
    [{ $ends_with: 'ΟΣ' }, 'οδοσ', 'οδος', 'Όμηρος'],
    [{ $ends_with: 'ηροσ' }, 'Όμηρος'],
  ] as [object, ...string[]][])
    for (const field of ['last_name', 'external_id', 'attribute_values.last_name']) {
      const body = { filter: { [field]: test }, sort_direction: 'asc' }
      expect([test, field, names(await send('POST', '/v1/people/filter', body))]).toEqual([test, field, expected])
    }
})
