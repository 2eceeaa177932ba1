import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop, useSharedShop } from '../../test/support/shop.ts'
import { definitionKey } from '../organizations/definition-schema.ts'
import { maxKeys, observedFollower } from './follow.ts'
import { declarableKey } from './observed.ts'

const service = useOwnService()
let hours = 0

/** Counts what was written since the last call. */
function count() {
  hours += 1
  const nowMs = () => Date.now() + hours * 3_600_000
  return follow(service.db, [observedFollower()], { nowMs })
}

type Item = {
  key: string
  types: Record<string, number>
  count: number
  declarable: boolean
  first_seen: string
  last_seen: string
}

async function observed({ send }: Organization, owner = 'people'): Promise<Record<string, Item>> {
  const { status, body } = await send('GET', `/v1/schema/observed?owner=${owner}`)
  expect(status).toBe(200)
  return Object.fromEntries(body.data.items.map((item: Item) => [item.key, item]))
}

const counts = (items: Record<string, Item>) =>
  Object.fromEntries(Object.entries(items).map(([key, item]) => [key, item.count]))
const none = { text: 0, number: 0, boolean: 0, object: 0, array: 0, date: 0, datetime: 0 }

describe('the observed keys', () => {
  const shop = useSharedShop(service, 'orders', 'city')

  it('have the number of values of each type that creates and updates wrote, with the first and the last time', async () => {
    await shop.ok('POST', '/v1/people', {
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
    await shop.ok('PATCH', '/v1/people/ada', {
      attribute_values: { shoe: '40', since: null, tags: ['a'], address: { zip: 1 }, vip: true },
    })
    await shop.ok('PATCH', '/v1/people/ada', { attribute_values: { shoe: '40' } })
    await shop.ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { shoe: 1 } })
    await count()
    const people = await observed(shop)
    const log = (await shop.send('GET', '/v1/changes?subject=person')).body.data.items
    expect(people.shoe).toEqual({
      key: 'shoe',
      types: { ...none, text: 1, number: 1 },
      count: 2,
      first_seen: log[0].at,
      last_seen: log[1].at,
      declarable: true,
    })
    expect(people['Shoe Size']).toMatchObject({ count: 1, declarable: false })
    const typed = Object.fromEntries(
      Object.values(people).map(({ key, types }) => [key, Object.keys(types).filter(type => types[type]! > 0)]),
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
    expect(counts(await observed(shop, 'orders'))).toEqual({ shoe: 1 })
  })

  it('are in the order of the keys, with the last change that is counted', async () => {
    const { items, sequence, truncated } = (await shop.send('GET', '/v1/schema/observed')).body.data
    const { head } = (await shop.send('GET', '/v1/changes?limit=1')).body.data
    expect([sequence, truncated]).toEqual([head, false])
    const keys = items.map(({ key }: Item) => key)
    expect(keys).toEqual(keys.toSorted())
    await shop.ok('PATCH', '/v1/people/ada', { first_name: 'Ada' })
    expect((await shop.send('GET', '/v1/schema/observed')).body.data.sequence).toBe(head)
  })

  it('count no restore, no value moved by a merge, and nothing twice', async () => {
    const before = counts(await observed(shop))
    await shop.ok('DELETE', '/v1/people/ada')
    const deleted = (await shop.send('GET', '/v1/changes?operation=delete')).body.data.items.at(-1).id
    await shop.ok('POST', `/v1/people/internal/${deleted}/restore`)
    await shop.ok('POST', '/v1/people', { external_id: 'bob' })
    await shop.ok('POST', '/v1/people/bob/merge', { from: 'ada' })
    await shop.ok('POST', '/v1/people/bob/unmerge', { from: 'ada' })
    await count()
    await count()
    expect(counts(await observed(shop))).toEqual(before)
  })

  it('leave the list while they are declared and come back when archived, without the values in between', async () => {
    const { id } = await shop.ok('POST', '/v1/schema/attributes', { owner: 'people', key: 'shoe', type: 'number' })
    expect((await observed(shop)).shoe).toBeUndefined()
    await shop.ok('PATCH', '/v1/people/bob', { attribute_values: { shoe: 41 } })
    await shop.ok('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect((await observed(shop)).shoe).toMatchObject({ count: 2 })
    await shop.ok('PATCH', '/v1/people/bob', { attribute_values: { shoe: 42 } })
    await shop.ok('PATCH', `/v1/schema/attributes/${id}`, { state: 'active' })
    await shop.ok('PATCH', '/v1/people/bob', { attribute_values: { shoe: 43 } })
    await count()
    await shop.ok('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect((await observed(shop)).shoe).toMatchObject({ count: 3, types: { number: 2, text: 1 } })
  })

  it('need the scope schema:read', async () => {
    const writer = service.sender(await service.tokenFor(shop.key, 'people:read people:write schema:write'))
    expect(await writer('GET', '/v1/schema/observed')).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    const unknown = await shop.send('GET', '/v1/schema/observed?owner=nothing')
    expect([unknown.status, unknown.body.details!.map(({ path }) => path)]).toEqual([400, ['/owner']])
  })

  it('are at most 10,000 of an owner, of which the known ones are counted on', async () => {
    const crowded = await createShop(service)
    const batch = (first: number) => ({
      operations: Array.from({ length: 10 }, (_, n) => ({
        op: 'create',
        body: {
          attribute_values: Object.fromEntries(Array.from({ length: 255 }, (_, k) => [`k${first + n * 255 + k}`, 1])),
        },
      })),
    })
    for (let first = 0; first < maxKeys; first += 2_550) await crowded.ok('POST', '/v1/people/batch', batch(first))
    await count()
    await crowded.ok('POST', '/v1/people', { attribute_values: { k1: 2, yet_another: 2 } })
    await count()
    const { items, truncated } = (await crowded.send('GET', '/v1/schema/observed')).body.data
    expect([items.length, truncated]).toEqual([maxKeys, true])
    const known = Object.fromEntries(items.map((item: Item) => [item.key, item.count]))
    expect([known.k1, known.yet_another]).toEqual([2, undefined])
  })
})

describe('a key that says something about one person', () => {
  it('goes with the erasure of the only person who had it', async () => {
    const shop = await createShop(service)
    for (const external_id of ['ada', 'bob', 'eve'])
      await shop.ok('POST', '/v1/people', { external_id, attribute_values: { shared: 1 } })
    await shop.ok('PATCH', '/v1/people/ada', { attribute_values: { 'ada@example.com': true } })
    await shop.ok('PATCH', '/v1/people/eve', { attribute_values: { 'eve@example.com': true } })
    await count()
    expect(counts(await observed(shop))).toEqual({ shared: 3, 'ada@example.com': 1, 'eve@example.com': 1 })
    // The erasure of a survivor takes the keys of the merged person, too.
    await shop.ok('POST', '/v1/people/bob/merge', { from: 'ada' })
    await count()
    const { erasure } = await shop.ok('POST', '/v1/people/bob/erase', { reason: 'asked' })
    expect(erasure.removed.observed_keys).toBe(1)
    expect(counts(await observed(shop))).toEqual({ shared: 3, 'eve@example.com': 1 })
    await count()
    expect(counts(await observed(shop))).toEqual({ shared: 3, 'eve@example.com': 1 })
  })

  it('is not counted after an erasure that the counting has not reached', async () => {
    const shop = await createShop(service)
    await shop.ok('POST', '/v1/people', { external_id: 'ada', attribute_values: { 'ada@example.com': true } })
    await shop.ok('POST', '/v1/people/ada/erase', { reason: 'asked' })
    await count()
    expect(await observed(shop)).toEqual({})
  })
})

it('the keys that can be declared are those of new attributes', () => {
  expect(declarableKey.source).toBe((definitionKey as { pattern?: string }).pattern)
})
