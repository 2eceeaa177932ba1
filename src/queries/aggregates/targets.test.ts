import { beforeAll, describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(
  service,
  'orders',
  'buyer',
  'friends',
  { key: 'products', kind: 'item' },
  { key: 'tags', kind: 'item' },
  { key: 'category', owner: 'products', type: 'text' },
  { key: 'maker', owner: 'products', type: 'person' },
  { key: 'items', owner: 'orders', type: 'stack', target_stack: 'products', cardinality: 'many' },
  { key: 'tagged', owner: 'orders', type: 'stack', target_stack: 'tags', cardinality: 'many' },
  { key: 'total', owner: 'orders', type: 'number' },
  { key: 'country', owner: 'people', type: 'text' },
  { key: 'credit', owner: 'people', type: 'number' },
  { key: 'joined', owner: 'people', type: 'datetime' },
  { key: 'languages', owner: 'people', type: 'text', cardinality: 'many' },
  { key: 'notes', owner: 'people', type: 'json' },
)
const field = (key: string) => `attribute_values.${key}`
const ofBuyer = (key: string) => field(`buyer.${field(key)}`)
const ofItems = (key: string) => field(`items.${field(key)}`)
const turnover = { op: 'sum', field: field('total') }
const best = { sort: [{ measure: 0, direction: 'desc' }], limit: 10 }

const aggregate = (body: object, headers = {}) => shop.send('POST', '/v1/stacks/orders/aggregate', body, headers)

async function groupsOf(body: object): Promise<unknown[][]> {
  const { status, body: reply } = await aggregate(body)
  if (status !== 200) throw new Error(JSON.stringify(reply))
  return reply.data.groups.map(({ by, measures }: { by: unknown[]; measures: unknown[] }) => [...by, ...measures])
}

let nameless: string
beforeAll(async () => {
  const { ok } = shop
  // This value is older than the declaration, and has another type.
  await ok('POST', '/v1/stacks/products', {
    external_id: 'old',
    attribute_values: { launched: 'soon', category: 'toy' },
  })
  await ok('POST', '/v1/schema/attributes', { owner: 'products', key: 'launched', type: 'date' })
  for (const [external_id, attribute_values] of Object.entries({
    train: { category: 'toy', launched: '2026-01-05', maker: 'ada' },
    kite: { category: 'toy', launched: '2026-01-25' },
    lamp: { category: 'home' },
  }))
    await ok('POST', '/v1/stacks/products', { external_id, attribute_values })
  for (const [external_id, first_name, attribute_values] of [
    ['ada', 'Ada', { country: 'IT', credit: 5, joined: '2026-01-31T23:30:00Z' }],
    ['bob', 'Bob', { country: 'DE', credit: 7, joined: '2026-02-10T00:00:00Z' }],
    ['eve', 'Eve', { country: 'IT' }],
  ] as const)
    await ok('POST', '/v1/people', { external_id, first_name, attribute_values })
  nameless = (await ok('POST', '/v1/people', { first_name: 'Nameless', attribute_values: { country: 'FR' } })).id
  for (const [external_id, attribute_values] of Object.entries({
    o1: { total: 10, buyer: 'ada', items: ['train', 'kite', 'lamp'] },
    o2: { total: 20, buyer: 'ada', items: ['old', 'train', 'lamp'] },
    o3: { total: 25, buyer: 'bob', items: ['kite'] },
    o4: { total: 1, buyer: 'eve' },
    o5: { total: 2 },
    o6: { total: 4, buyer: { id: nameless } },
    o7: { total: 8, buyer: 'only a name' },
  }))
    await ok('POST', '/v1/stacks/orders', { external_id, attribute_values })
})

describe('an aggregate across a relationship', () => {
  it('answers who the best customers are, and which are the best countries', async () => {
    expect(await groupsOf({ group_by: [field('buyer')], measures: [turnover], ...best })).toEqual([
      ['ada', 30],
      ['bob', 25],
      ['only a name', 8],
      [{ id: nameless }, 4],
      [null, 2],
      ['eve', 1],
    ])
    expect(await groupsOf({ group_by: [ofBuyer('country')], measures: [turnover], ...best })).toEqual([
      ['IT', 31],
      ['DE', 25],
      [null, 10],
      ['FR', 4],
    ])
    const both = [field('buyer'), ofBuyer('country')]
    expect(await groupsOf({ group_by: both, measures: [turnover], ...best, limit: 2 })).toEqual([
      ['ada', 'IT', 30],
      ['bob', 'DE', 25],
    ])
  })

  it('groups by the fields of a profile, by columns, and by spans of time', async () => {
    const filter = { [field('total')]: { $in: [2, 4, 8, 25] } }
    const by = (...keys: unknown[]) => groupsOf({ filter, group_by: keys })
    expect(await by(field('buyer.first_name'), field('buyer.state'))).toEqual([
      ['Bob', 'active', 1],
      ['Nameless', 'active', 1],
      [null, 'placeholder', 1],
      [null, null, 1],
    ])
    expect(await by(field('buyer.external_id'))).toEqual([
      ['bob', 1],
      ['only a name', 1],
      [null, 2],
    ])
    const { id } = await shop.ok('GET', '/v1/people/bob')
    expect(await groupsOf({ filter: { [field('buyer')]: 'bob' }, group_by: [field('buyer.id')] })).toEqual([[id, 1]])
    expect((await by(field('buyer.created_at'))).at(-1)).toEqual([null, 1])
    const span = { field: ofBuyer('joined'), by: 'month' }
    expect(await groupsOf({ group_by: [span] })).toEqual([
      ['2026-01-01', 2],
      ['2026-02-01', 1],
      [null, 4],
    ])
    expect(await groupsOf({ group_by: [{ ...span, time_zone: 'Europe/Berlin' }] })).toEqual([
      ['2026-02-01', 3],
      [null, 4],
    ])
  })

  it('has an entity with several targets once in the group of each of their values', async () => {
    const measures = [{ op: 'count' }, turnover]
    expect(await groupsOf({ group_by: [ofItems('category')], measures })).toEqual([
      ['home', 2, 30],
      ['toy', 3, 55],
      [null, 4, 15],
    ])
    expect(await groupsOf({ group_by: [ofItems('category'), field('items.external_id')], measures })).toEqual([
      ['home', 'lamp', 2, 30],
      ['toy', 'kite', 2, 35],
      ['toy', 'old', 1, 20],
      ['toy', 'train', 2, 30],
      [null, null, 4, 15],
    ])
    expect(
      await groupsOf({ group_by: [ofBuyer('country'), ofItems('category')], measures: [turnover], limit: 3 }),
    ).toEqual([
      ['DE', 'toy', 25],
      ['FR', null, 4],
      ['IT', 'home', 30],
    ])
    // A target's own targets are shown as in a read. An entity is also in the group of null if one of its targets lacks
    // the value.
    expect(await groupsOf({ group_by: [ofItems('maker')] })).toEqual([
      ['ada', 2],
      [null, 7],
    ])
  })

  it('counts the values of another type among the nulls, and as skipped', async () => {
    const { groups, skipped } = (await aggregate({ group_by: [{ field: ofItems('launched'), by: 'month' }] })).body.data
    // Two items of o2 have no month, and o2 is in the group once.
    expect(groups).toEqual([
      { by: ['2026-01-01'], measures: [3] },
      { by: [null], measures: [6] },
    ])
    expect(skipped).toEqual([{ path: '/group_by/0', values: 1 }])
  })

  it('measures the fields of the one target of each entity', async () => {
    const measures = [
      { op: 'sum', field: ofBuyer('credit') },
      { op: 'avg', field: ofBuyer('credit') },
      { op: 'max', field: field('buyer.first_name') },
      { op: 'count', field: field('buyer.created_at') },
      { op: 'count_distinct', field: ofBuyer('country') },
      { op: 'count_distinct', field: field('buyer') },
    ]
    const filter = { [field('total')]: { $lte: 25 } }
    expect(await groupsOf({ filter, measures })).toEqual([[17, expect.closeTo(17 / 3), 'Nameless', 6, 3, 5]])
    expect(await groupsOf({ group_by: [ofBuyer('country')], measures: measures.slice(0, 1), ...best })).toEqual([
      ['IT', 10],
      ['DE', 7],
      ['FR', null],
      [null, null],
    ])
    expect(
      await groupsOf({
        group_by: [ofItems('category')],
        measures: [{ op: 'sum', field: ofBuyer('credit') }],
        limit: 2,
      }),
    ).toEqual([
      ['home', 10],
      ['toy', 17],
    ])
  })

  it('hides a deleted target until it is restored, and follows a merged one to the survivor', async () => {
    const bySum = () => groupsOf({ group_by: [ofBuyer('country')], measures: [turnover] })
    const before = await bySum()
    const { id: bob } = await shop.ok('GET', '/v1/people/bob')
    await shop.ok('DELETE', '/v1/people/bob')
    expect(await bySum()).toEqual([
      ['FR', 4],
      ['IT', 31],
      [null, 35],
    ])
    await shop.ok('POST', `/v1/people/internal/${bob}/restore`)
    expect(await bySum()).toEqual(before)
    await shop.ok('DELETE', '/v1/stacks/products/train')
    // o1 and o2 have other items, so the group without items does not contain them.
    expect(await groupsOf({ group_by: [field('items.external_id')] })).toEqual([
      ['kite', 2],
      ['lamp', 2],
      ['old', 1],
      [null, 4],
    ])
    await shop.ok('POST', '/v1/people/ada/merge', { from: 'bob' })
    expect(await bySum()).toEqual([
      ['FR', 4],
      ['IT', 56],
      [null, 10],
    ])
    expect(await groupsOf({ group_by: [field('buyer')], measures: [turnover], ...best, limit: 1 })).toEqual([
      ['ada', 55],
    ])
  })

  it('warns of a key that no target carries, and refuses it under handling=strict', async () => {
    const body = { group_by: [ofBuyer('contry')] }
    const { groups, warnings } = (await aggregate(body)).body.data
    expect(groups).toEqual([{ by: [null], measures: [7] }])
    expect(warnings).toEqual([{ path: '/group_by/0', message: 'is not declared, and no person carries it' }])
    expect((await aggregate(body, { Prefer: 'handling=strict' })).status).toBe(400)
  })

  it('needs the scope that reads the targets', async () => {
    const onlyRecords = service.sender(await service.tokenFor(shop.key, 'records:read'))
    const ask = (body: object) => onlyRecords('POST', '/v1/stacks/orders/aggregate', body)
    for (const body of [
      { group_by: [ofBuyer('country')] },
      { group_by: [{ field: field('buyer.created_at'), by: 'day' }] },
      { measures: [{ op: 'count_distinct', field: field('buyer.state') }] },
    ])
      expect(await ask(body)).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    // The names of an order's targets are part of the order, so the scope for records is enough.
    expect(await ask({ group_by: [field('buyer')] })).toMatchObject({ status: 200 })
    expect(await ask({ group_by: [ofItems('category')] })).toMatchObject({ status: 200 })
  })
})

it.each<[string, object, string, RegExp]>([
  [
    'a path across two relationships',
    { group_by: [ofItems(`maker.${field('country')}`)] },
    '/group_by/0',
    /^leads across two relationships, items and maker/,
  ],
  [
    'a path across no relationship',
    { group_by: [field(`total.${field('country')}`)] },
    '/group_by/0',
    /^leads across total, which is not a relationship/,
  ],
  [
    'an attribute in the words of a column',
    { group_by: ['state', field('buyer.country')] },
    '/group_by/1',
    /an attribute is attribute_values\.buyer\.attribute_values\.country$/,
  ],
  [
    'a column that targets lack',
    { measures: [{ op: 'count', field: field('items.email') }] },
    '/measures/0/field',
    /"email" is not a field of a record/,
  ],
  [
    'an attribute of targets with many values',
    { group_by: [ofBuyer('languages')] },
    '/group_by/0',
    /^holds many values/,
  ],
  ['a json attribute of targets', { group_by: [ofBuyer('notes')] }, '/group_by/0', /^is of type json/],
  [
    'a span of a text',
    { group_by: [{ field: ofBuyer('country'), by: 'day' }] },
    '/group_by/0/field',
    /^is neither a time nor a date/,
  ],
  [
    'a relationship with many targets',
    { group_by: [field('items')] },
    '/group_by/0',
    /^leads to many targets: .*attribute_values\.items\.external_id/,
  ],
  [
    'two relationships with many targets',
    { group_by: [ofItems('category'), field('tagged.external_id')] },
    '/group_by/1',
    /^leads to many targets, as items does/,
  ],
  [
    'a measure of many targets',
    { measures: [{ op: 'count' }, { op: 'max', field: ofItems('category') }] },
    '/measures/1/field',
    /^leads to many targets/,
  ],
  [
    'a sum of texts',
    { measures: [{ op: 'sum', field: ofBuyer('country') }] },
    '/measures/0/field',
    /^sum adds numbers/,
  ],
])('refuses %s', async (_, body, path, message) => {
  const { status, body: refused } = await aggregate(body)
  expect([status, refused.error]).toEqual([400, 'invalid_parameter'])
  expect(refused.details).toEqual([{ path, message: expect.stringMatching(message) }])
})
