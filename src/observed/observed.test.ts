import { describe, expect, it } from 'vitest'
import { insertPeople } from '../../test/support/many-people.ts'
import { useOwnService } from '../../test/support/service.ts'
import { createShop, type Shop, useSharedShop } from '../../test/support/shop.ts'
import { definitionKey } from '../organizations/definition-schema.ts'
import { declarableKey } from './observed.ts'
import type { ObservedKey } from './schema.ts'

const service = useOwnService()
const lines = { Accept: 'application/x-ndjson' }
const none = { text: 0, number: 0, boolean: 0, object: 0, array: 0, date: 0, datetime: 0 }

async function observed({ ok }: Pick<Shop, 'ok'>, owner = 'people'): Promise<Record<string, ObservedKey>> {
  const { items } = await ok('GET', `/v1/schema/observed?owner=${owner}`)
  return Object.fromEntries(items.map((item: ObservedKey) => [item.key, item]))
}

const counts = (items: Record<string, ObservedKey>) =>
  Object.fromEntries(Object.entries(items).map(([key, item]) => [key, item.count]))

describe('the observed keys', () => {
  const shop = useSharedShop(service, 'orders', 'city')

  it('have the number of stored values of each type, with times and identifiers of the entities', async () => {
    const ada = await shop.ok('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: {
        shoe: 39,
        'Shoe Size': '39',
        city: 'Rome',
        since: '2026-01-01',
        at: '2026-01-01T00:00:00+01:00',
        no: '2026-02-30',
      },
    })
    const bob = await shop.ok('POST', '/v1/people', {
      external_id: 'bob',
      attribute_values: { shoe: '40', since: null, tags: ['a'], address: { zip: 1 }, vip: true },
    })
    const order = await shop.ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { shoe: 1 } })
    const people = await observed(shop)
    expect(people.shoe).toEqual({
      key: 'shoe',
      types: { ...none, text: 1, number: 1 },
      count: 2,
      first_seen: ada.created_at,
      last_seen: bob.updated_at,
      declarable: true,
      examples: [bob.id, ada.id],
    })
    expect(people['Shoe Size']).toMatchObject({ count: 1, declarable: false })
    const typed = Object.fromEntries(
      Object.values(people).map(({ key, types }) => [
        key,
        Object.entries(types).flatMap(([type, count]) => (count > 0 ? [type] : [])),
      ]),
    )
    expect(typed).toEqual({
      'Shoe Size': ['text'],
      address: ['object'],
      at: ['datetime'],
      no: ['text'],
      shoe: ['text', 'number'],
      since: ['date'],
      tags: ['array'],
      vip: ['boolean'],
    })
    expect(await observed(shop, 'orders')).toMatchObject({ shoe: { count: 1, examples: [order.record_id] } })
  })

  it('are in the order of the keys, with the last change and the number of entities', async () => {
    const { items, ...rest } = await shop.ok('GET', '/v1/schema/observed')
    const { head } = await shop.ok('GET', '/v1/changes?limit=1')
    expect(rest).toEqual({ sequence: head, entities: 2, truncated: false })
    const keys = items.map(({ key }: ObservedKey) => key)
    expect(keys).toEqual(keys.toSorted())
    const { data } = (await shop.send('GET', '/v1/schema/observed', undefined, lines)).body
    expect(data).toEqual([...items, rest])
  })

  it('leave the list while they are declared and come back when archived', async () => {
    const { id } = await shop.ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'shoe', type: 'number' })
    expect((await observed(shop)).shoe).toBeUndefined()
    await shop.ok('PATCH', '/v1/people/bob', { attribute_values: { shoe: 41 } })
    await shop.ok('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect((await observed(shop)).shoe).toMatchObject({ count: 2, types: { number: 2, text: 0 } })
  })

  it('count the values that a declaration would find', async () => {
    const { shoe } = await observed(shop)
    const preview = { owner: 'people', key: 'shoe', type: 'text', dry_run: true }
    const { fits, misfits } = await shop.ok('PUT', '/v1/schema/observed/declare', preview)
    expect(fits + misfits).toBe(shoe!.count)
  })

  it('need the scope schema:read, and the read scope of the owner for identifiers', async () => {
    const writer = service.sender(await service.tokenFor(shop.key, 'people:read people:write schema:write'))
    expect(await writer('GET', '/v1/schema/observed')).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    const reader = service.sender(await service.tokenFor(shop.key, 'schema:read records:read'))
    const { items } = (await reader('GET', '/v1/schema/observed')).body.data
    expect(items.map(({ examples }: ObservedKey) => examples.length)).toEqual(items.map(() => 0))
    for (const headers of [{}, lines]) {
      const unknown = await shop.send('GET', '/v1/schema/observed?owner=nothing', undefined, headers)
      expect([unknown.status, unknown.body.details!.map(({ path }) => path)]).toEqual([400, ['/owner']])
    }
  })
})

it('a sample is the newest 10,000 entities at most, and the stream counts all of them', async () => {
  const shop = await createShop(service)
  await shop.ok('POST', '/v1/people', { attribute_values: { oldest: 1 } })
  await insertPeople(service.sql, shop.id, 10_500, { attributes: `jsonb_build_object('key', n)` })
  await service.sql(
    `update entities set id = '00000000-0000-7000-8000-000000000000' where organization_id = $1 and attributes ? 'oldest'`,
    [shop.id],
  )
  const { items, ...rest } = await shop.ok('GET', '/v1/schema/observed')
  expect(rest).toMatchObject({ truncated: true })
  expect(rest.entities).toBeLessThanOrEqual(10_000)
  expect(items).toMatchObject([{ key: 'key', count: rest.entities }])
  expect((await shop.send('GET', '/v1/schema/observed', undefined, lines)).body.data).toMatchObject([
    { key: 'key', count: 10_500 },
    { key: 'oldest', count: 1 },
    { entities: 10_501, truncated: false },
  ])
})

it('at most 10,000 keys of an owner are counted', async () => {
  const shop = await createShop(service)
  const attributes = `(select jsonb_object_agg('k' || n * 100 + i, 1) from generate_series(1, 100) i)`
  await insertPeople(service.sql, shop.id, 110, { attributes })
  const { items, entities, truncated } = await shop.ok('GET', '/v1/schema/observed')
  expect([items.length, entities, truncated]).toEqual([10_000, 110, true])
})

it('a key that only an erased person had is gone with the person', async () => {
  const shop = await createShop(service)
  for (const external_id of ['ada', 'bob'])
    await shop.ok('POST', '/v1/people', {
      external_id,
      attribute_values: { shared: 1, [`${external_id}@example.com`]: true },
    })
  await shop.ok('POST', '/v1/people/ada/erase', { reason: 'asked' })
  expect(counts(await observed(shop))).toEqual({ shared: 1, 'bob@example.com': 1 })
})

it('the keys that can be declared are those of new attributes', () => {
  expect(declarableKey.source).toBe((definitionKey as { pattern?: string }).pattern)
})
