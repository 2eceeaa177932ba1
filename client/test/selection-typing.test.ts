import { describe, expectTypeOf, it } from 'vitest'
import { createClient, type FieldName, type Listing, type Person } from '../index.ts'
import { scriptedClient } from './scripted-fetch.ts'

// `npm run typecheck` checks this file. The functions given to `never` are not called. They must only compile, or must
// not compile under @ts-expect-error.
type Schema = {
  people: {
    age: { type: 'number'; cardinality: 'one' }
    vip: { type: 'boolean'; cardinality: 'one' }
    born: { type: 'date'; cardinality: 'one' }
    seen_at: { type: 'datetime'; cardinality: 'many' }
    referrer: { type: 'person'; cardinality: 'one' }
    orders: { type: 'stack'; cardinality: 'many'; target: 'orders' }
  }
  stacks: {
    orders: {
      kind: 'item'
      attributes: {
        total: { type: 'number'; cardinality: 'one' }
        tags: { type: 'text'; cardinality: 'many' }
        raw: { type: 'json'; cardinality: 'one' }
      }
    }
    visits: { kind: 'event'; attributes: Record<never, never> }
  }
}
const { client } = scriptedClient([])
const shop = createClient<Schema>({ url: 'https://kith.test', token: '' })
const never = (_: () => unknown) => {}

describe('a selection', () => {
  it('of fields has exactly these members', () => {
    never(async () => {
      for await (const person of shop.people.filter({ last_name: 'L' }, { fields: ['external_id', 'version'] }))
        expectTypeOf(person).toEqualTypeOf<{ external_id: string | null; version: number }>()
      const fields = ['id', 'attribute_values.age', 'attribute_values.orders', 'attribute_values.other'] as const
      const { items } = await shop.people.list({ fields, sort: { field: 'attribute_values.age' } }).page()
      expectTypeOf(items).toEqualTypeOf<
        {
          id: string
          attribute_values: { age?: number; orders?: (string | { record_id: string })[]; other?: unknown }
        }[]
      >()
      for await (const order of shop.people.related('ada', { target: 'orders', fields: ['record_id', 'stack_key'] }))
        expectTypeOf(order).toEqualTypeOf<{ record_id: string; stack_key: 'orders' }>()
    })
    // @ts-expect-error: the field is called first_name
    never(() => shop.people.list({ fields: ['firstname'] }))
    // @ts-expect-error: records have no email
    never(() => shop.stack('orders').filter({}, { fields: ['email'] }))
  })

  it('of fields that the compiler does not know may have any of them', () => {
    never(async () => {
      const fields: FieldName<Schema, 'people'>[] = ['id']
      const { items } = await shop.people.list({ fields }).page()
      expectTypeOf(items[0]!.first_name).toEqualTypeOf<string | null | undefined>()
    })
  })

  it('without fields has the whole entity', () => {
    never(() => {
      expectTypeOf(client.people.list({ size: 5, count: true })).toExtend<Listing<Person>>()
      expectTypeOf(client.people.search('ada')).toExtend<Listing<Person>>()
    })
  })

  it('of relationships has their targets by their cardinality and owner', () => {
    never(async () => {
      const include = ['referrer', 'orders'] as const
      const { items } = await shop.people.list({ include }).page()
      const { included, first_name } = items[0]!
      expectTypeOf(first_name).toEqualTypeOf<string | null>()
      expectTypeOf(included.referrer!.attribute_values.age).toEqualTypeOf<number | undefined>()
      expectTypeOf(included.orders[0]!.attribute_values.total).toEqualTypeOf<number | undefined>()
      const both = await shop.people.filter({}, { fields: ['external_id'], include: ['referrer'] }).page()
      expectTypeOf(both.items[0]!.external_id).toEqualTypeOf<string | null>()
      // @ts-expect-error: it is not asked for
      console.log(both.items[0]!.first_name, both.items[0]!.included.orders)
    })
    // @ts-expect-error: age is no relationship
    never(() => shop.people.list({ include: ['age'] }))
    // @ts-expect-error: it is called referrer
    never(() => shop.people.filter({}, { include: ['referer'] }))
  })

  it('with labels has the names of items and targets', () => {
    never(async () => {
      const { items } = await shop.people.list({ fields: ['external_id'], labels: true }).page()
      expectTypeOf(items[0]!.label).toEqualTypeOf<string>()
      expectTypeOf(items[0]!.relationship_labels.referrer?.ada).toEqualTypeOf<string | undefined>()
      const order = await shop.stack('orders').get('o-1', { labels: true })
      expectTypeOf(order.label).toEqualTypeOf<string>()
      expectTypeOf(order.attribute_values.total).toEqualTypeOf<number | undefined>()
      const found = await shop.people.search('ada', { labels: true }).page()
      expectTypeOf(found.items[0]!.label).toEqualTypeOf<string>()
      for await (const { label } of shop.segments.people('vips', { include: ['referrer'], labels: true }))
        expectTypeOf(label).toEqualTypeOf<string>()
      for await (const { label } of shop.people.related('ada', { target: 'orders', labels: true }))
        expectTypeOf(label).toEqualTypeOf<string>()
      expectTypeOf((await shop.people.get('ada')).label).toEqualTypeOf<string | undefined>()
      // @ts-expect-error: it is not asked for
      console.log((await shop.people.list({ fields: ['external_id'] }).page()).items[0]!.label)
    })
    // @ts-expect-error: labels are those of today
    never(() => shop.people.get('ada', { labels: true, version: 1 }))
    // @ts-expect-error: it is not a field
    never(() => shop.people.list({ fields: ['label'] }))
  })

  it('of one entity by internal identifiers has no names in relationships', () => {
    never(async () => {
      const { attribute_values } = await shop.people.get('ada', { links: 'id' })
      expectTypeOf(attribute_values.referrer).toEqualTypeOf<{ id: string } | undefined>()
      const labeled = await shop.people.get('ada', { links: 'id', labels: true })
      expectTypeOf(labeled.attribute_values.referrer).toEqualTypeOf<{ id: string } | undefined>()
      const named = await shop.people.get('ada')
      expectTypeOf(named.attribute_values.referrer).toEqualTypeOf<string | { id: string } | undefined>()
    })
    // @ts-expect-error: it is no form of links
    never(() => shop.people.get('ada', { links: 'name' }))
  })

  it('is sorted by declared fields', () => {
    never(() => shop.people.list({ sort: { field: 'last_name', direction: 'desc' } }))
    // @ts-expect-error: it is called age
    never(() => shop.people.list({ sort: { field: 'attribute_values.agee' } }))
    // @ts-expect-error: records have no last_name
    never(() => shop.stack('orders').list({ sort: { field: 'last_name' } }))
    never(() => client.stack('orders').list({ sort: { field: 'attribute_values.anything' } }))
    const age = { op: 'sum', field: 'attribute_values.age' } as const
    const where = { 'attribute_values.vip': true }
    never(() =>
      shop.people.list({ sort: { field: 'incoming.people.referrer', measure: age, where, direction: 'desc' } }),
    )
    never(() => client.people.list({ sort: { field: 'incoming.orders.buyer', measure: { op: 'count' } } }))
    // @ts-expect-error: leads to orders
    never(() => shop.people.list({ sort: { field: 'incoming.people.orders', measure: { op: 'count' } } }))
    // @ts-expect-error: a sum needs a field
    never(() => shop.people.list({ sort: { field: 'incoming.people.referrer', measure: { op: 'sum' } } }))
    // @ts-expect-error: a measure of those who link here
    never(() => shop.people.list({ sort: { field: 'last_name', measure: { op: 'count' } } }))
    // @ts-expect-error: it is called age
    never(() => shop.people.list({ sort: { field: 'incoming.people.referrer', measure: age, where: { agee: 1 } } }))
    // @ts-expect-error: the people of a segment are sorted by fields
    never(() => client.segments.people('a', { sort: { field: 'incoming.orders.buyer', measure: { op: 'count' } } }))
  })

  it('of groups and segments has filters of the schema', () => {
    never(() => shop.people.aggregate({ filter: { 'attribute_values.age': { $gt: 5 } }, group_by: ['language'] }))
    never(() => shop.segments.create({ key: 'old', filter: { $or: [{ $segment: 'vips' }, { first_name: null }] } }))
    // @ts-expect-error: it is called age
    never(() => shop.people.aggregate({ filter: { 'attribute_values.agee': 5 } }))
    // @ts-expect-error: a number
    never(() => shop.segments.patch('old', { filter: { 'attribute_values.age': '5' } }))
    // @ts-expect-error: records are in no segment
    never(() => shop.stack('orders').filter({ $segment: 'old' }))
  })
})
