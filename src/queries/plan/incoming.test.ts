import { beforeAll, describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(
  service,
  'referrer',
  'buyer',
  { key: 'total', owner: 'orders', type: 'number', indexed: true },
  { key: 'paid_at', owner: 'orders', type: 'datetime' },
  { key: 'sent_on', owner: 'orders', type: 'date' },
  { key: 'note', owner: 'orders', type: 'text' },
  { key: 'tags', owner: 'orders', type: 'text', cardinality: 'many' },
  { key: 'carrier', owner: 'orders', type: 'stack', target_stack: 'companies' },
)

const orders = [
  {
    external_id: 'o1',
    buyer: 'ada',
    total: 60,
    paid_at: '2026-11-01T10:00:00+02:00',
    sent_on: '2026-11-02',
    note: 'b',
  },
  { external_id: 'o2', buyer: 'ada', total: 50.5, paid_at: '2026-11-20T10:00:00Z', sent_on: '2026-11-21', note: 'a' },
  { external_id: 'o3', buyer: 'bob', total: 200, paid_at: '2026-01-01T00:00:00Z', carrier: 'dhl' },
  { external_id: 'o4', buyer: 'cleo' },
]

beforeAll(async () => {
  for (const [external_id, referrer] of Object.entries({ ada: 'bob', bob: null, cleo: 'bob', dan: null }))
    await shop.ok('POST', '/v1/people', { external_id, attribute_values: { referrer } })
  for (const { external_id, ...attribute_values } of orders)
    await shop.ok('POST', '/v1/stacks/orders', { external_id, attribute_values })
})

async function names(filter: unknown, path = '/v1/people/filter'): Promise<string[]> {
  const { items } = await shop.ok('POST', path, { filter, sort_direction: 'asc' })
  return items.map(({ external_id }: { external_id: string }) => external_id)
}
const buyers = (condition: unknown) => names({ 'incoming.orders.buyer': condition })
const total = 'attribute_values.total'

describe('a filter on incoming relationships', () => {
  it('asks who is named by none, by some, and by every record that matches', async () => {
    expect(await buyers({ $none: {} })).toEqual(['dan'])
    expect(await buyers({ $some: { [total]: { $gte: 60 } } })).toEqual(['ada', 'bob'])
    expect(await buyers({ $every: { [total]: { $gte: 55 } } })).toEqual(['bob', 'dan'])
    expect(await names({ 'incoming.people.referrer': { $some: { external_id: 'cleo' } } })).toEqual(['bob'])
  })

  it('counts the records, all or those that match, and 0 if there are none', async () => {
    expect(await buyers({ $count: { $gte: 2 } })).toEqual(['ada'])
    expect(await buyers({ $count: 0 })).toEqual(['dan'])
    expect(await buyers({ $count: 1, $where: { [total]: { $gt: 55 } } })).toEqual(['ada', 'bob'])
  })

  it('adds and averages numbers exactly, and a measure of nothing is missing', async () => {
    expect(await buyers({ $sum: { [total]: { $gt: 110 } } })).toEqual(['ada', 'bob'])
    expect(await buyers({ $sum: { [total]: 110.5 } })).toEqual(['ada'])
    expect(await buyers({ $avg: { [total]: 55.25 } })).toEqual(['ada'])
    expect(await buyers({ $sum: { [total]: { $exists: false } } })).toEqual(['cleo', 'dan'])
    expect(await buyers({ $sum: { [total]: { $lt: 1_000 } }, $where: { external_id: 'o1' } })).toEqual(['ada'])
  })

  it('compares the least and the greatest number, text, date and time', async () => {
    expect(await buyers({ $min: { [total]: { $lt: 60 } } })).toEqual(['ada'])
    expect(await buyers({ $max: { 'attribute_values.note': 'b' } })).toEqual(['ada'])
    expect(await buyers({ $max: { 'attribute_values.sent_on': { $gte: '2026-11-21' } } })).toEqual(['ada'])
    expect(await buyers({ $min: { 'attribute_values.paid_at': { $lt: '2026-11-01T08:00:01Z' } } })).toEqual([
      'ada',
      'bob',
    ])
    expect(await buyers({ $max: { created_at: { $gt: '2020-01-01T00:00:00Z' } } })).toEqual(['ada', 'bob', 'cleo'])
  })

  it('follows at most three relationships in a row, in both directions', async () => {
    const sentByDhl = { 'attribute_values.carrier': { $some: { external_id: 'dhl' } } }
    expect(await buyers({ $some: sentByDhl })).toEqual(['bob'])
    const buysFromDhl = { 'incoming.orders.buyer': { $some: sentByDhl } }
    expect(await names({ 'attribute_values.referrer': { $some: buysFromDhl } })).toEqual(['ada', 'cleo'])
    const reply = await shop.send('POST', '/v1/people/filter', {
      filter: { 'incoming.people.referrer': { $some: { 'attribute_values.referrer': { $some: buysFromDhl } } } },
    })
    expect(reply.body.details).toEqual([
      {
        path: '/filter/incoming.people.referrer/$some/attribute_values.referrer/$some/incoming.orders.buyer/$some/attribute_values.carrier/$some',
        message: 'exceeds the maximum of 3 relationships in a row',
      },
    ])
  })

  it('counts at the deepest level of a filter, where no filter may follow', async () => {
    const counting = { 'incoming.orders.buyer': { $count: 0 } }
    const nested = { $not: { $not: { $not: { $not: counting } } } }
    expect(await names(nested)).toEqual(['dan'])
    const filtered = { $not: { $not: { $not: { $not: { 'incoming.orders.buyer': { $count: 0, $where: {} } } } } } }
    const reply = await shop.send('POST', '/v1/people/filter', { filter: filtered })
    expect(reply.body.details).toMatchObject([{ message: 'is nested deeper than 5 levels' }])
  })

  it('finds records, is counted, and follows a write, a deletion and a restore at once', async () => {
    expect(await names({ 'incoming.orders.carrier': { $count: { $gte: 1 } } }, '/v1/stacks/companies/filter')).toEqual([
      'dhl',
    ])
    const order = { external_id: 'o5', attribute_values: { buyer: 'dan' } }
    const { record_id } = await shop.ok('POST', '/v1/stacks/orders', order)
    const body = { filter: { 'incoming.orders.buyer': { $count: 0 } }, count: true }
    const count = async () => (await shop.ok('POST', '/v1/people/filter', body)).count
    expect(await count()).toBe(0)
    await shop.ok('DELETE', '/v1/stacks/orders/o5')
    expect(await count()).toBe(1)
    await shop.ok('POST', `/v1/stacks/orders/internal/${record_id}/restore`)
    expect(await count()).toBe(0)
    await shop.ok('DELETE', '/v1/stacks/orders/o5')
  })

  it('needs the read scope of the records', async () => {
    const body = { filter: { 'incoming.orders.buyer': { $count: 0 } } }
    const send = service.sender(await service.tokenFor(shop.key, 'people:read'))
    expect((await send('POST', '/v1/people/filter', body)).status).toBe(403)
  })

  const refused: [filter: unknown, path: string, message: string][] = [
    [
      { 'incoming.nobody.buyer': {} },
      'incoming.nobody.buyer',
      'names nobody who links here: write incoming.<people or the key of a stack>.<the key of a relationship>',
    ],
    [{ 'incoming.orders.total': {} }, 'incoming.orders.total', 'orders has no relationship "total"'],
    [
      { 'incoming.orders': { $some: {} } },
      'incoming.orders',
      'names nobody who links here: write incoming.<people or the key of a stack>.<the key of a relationship>',
    ],
    [
      { 'incoming.orders.buyer.attribute_values.total': { $some: {} } },
      'incoming.orders.buyer.attribute_values.total',
      'orders has no relationship "buyer.attribute_values.total"',
    ],
    [
      { 'incoming.orders.carrier': {} },
      'incoming.orders.carrier',
      'the relationship carrier of orders does not lead to this kind',
    ],
    [
      { 'incoming.orders.buyer': 'o1' },
      'incoming.orders.buyer',
      'must be an object with $some, $none, $every, $count, $sum, $avg, $min, $max',
    ],
    [
      { 'incoming.orders.buyer': {} },
      'incoming.orders.buyer',
      'must have one of $some, $none, $every, $count, $sum, $avg, $min, $max',
    ],
    [
      { 'incoming.orders.buyer': { $where: {} } },
      'incoming.orders.buyer/$where',
      'needs one of $count, $sum, $avg, $min, $max beside it',
    ],
    [
      { 'incoming.orders.buyer': { $eq: 'o1' } },
      'incoming.orders.buyer/$eq',
      'is not an operator here: use $some, $none, $every, $count, $sum, $avg, $min, $max',
    ],
    [
      { 'incoming.orders.buyer': { $count: { $gte: '2' } } },
      'incoming.orders.buyer/$count/$gte',
      'must be a number: write 2, without quotes',
    ],
    [
      { 'incoming.orders.buyer': { $sum: 100 } },
      'incoming.orders.buyer/$sum',
      'must be an object with a field: {"attribute_values.total": {"$gte": 100}}',
    ],
    [
      { 'incoming.orders.buyer': { $sum: { 'attribute_values.note': 1 } } },
      'incoming.orders.buyer/$sum/attribute_values.note',
      'sum adds numbers, but this is a text',
    ],
    [
      { 'incoming.orders.buyer': { $max: { 'attribute_values.tags': 'x' } } },
      'incoming.orders.buyer/$max/attribute_values.tags',
      'holds many values: only an attribute of cardinality one can be used here',
    ],
    [
      { 'incoming.orders.buyer': { $max: { 'attribute_values.unknown': 'x' } } },
      'incoming.orders.buyer/$max/attribute_values.unknown',
      'is not declared: max compares numbers, texts, dates and times, so declare the key with its type',
    ],
  ]
  it.each(refused)('refuses %j with its path', async (filter, path, message) => {
    const reply = await shop.send('POST', '/v1/people/filter', { filter })
    expect([reply.status, reply.body.details]).toEqual([400, [{ path: `/filter/${path}`, message }]])
  })
})
