import type { Static } from 'typebox'
import { describe, expectTypeOf, it } from 'vitest'
import type { attributeToJson } from '../../src/attributes/attributes.ts'
import type { ConsentTypeBody as StoredNewConsentType } from '../../src/consents/schema.ts'
import type { batchAnswer } from '../../src/entities/schema.ts'
import type { ConsentType as StoredConsentType } from '../../src/organizations/definitions.ts'
import type { personBody, Person as StoredPerson } from '../../src/people/schema.ts'
import type { StackRecord as StoredRecord } from '../../src/records/schema.ts'
import type { stackToJson } from '../../src/stacks/stacks.ts'
import type { ErrorCode as ServiceErrorCode } from '../../src/values/errors.ts'
import {
  type Attribute,
  type BatchResult,
  type Change,
  type ClientOptions,
  type ConsentType,
  type ConsentTypeBody,
  createClient,
  type EntityDryRun,
  type ErrorCode,
  type Filter,
  isKithError,
  type KithError,
  type Listing,
  type Person,
  type PersonBody,
  type Stack,
  type StackRecord,
  verifyWebhook,
  writable,
} from '../index.ts'
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
    products: {
      kind: 'item'
      attributes: {
        sku: { type: 'text'; cardinality: 'one'; required: true }
        maker: { type: 'person'; cardinality: 'one'; required: true }
        price: { type: 'number'; cardinality: 'one' }
      }
    }
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

describe('the wire types', () => {
  it('are equal to those of the service', () => {
    expectTypeOf<PersonBody>().toEqualTypeOf<Static<ReturnType<typeof personBody>>>()
    expectTypeOf<ConsentTypeBody>().toEqualTypeOf<StoredNewConsentType>()
    expectTypeOf<ErrorCode>().toEqualTypeOf<ServiceErrorCode>()
    expectTypeOf<Person>().toEqualTypeOf<StoredPerson>()
    expectTypeOf<BatchResult>().toExtend<Static<typeof batchAnswer>>()
    expectTypeOf<StackRecord>().toEqualTypeOf<StoredRecord>()
    expectTypeOf<Stack>().toEqualTypeOf<ReturnType<typeof stackToJson>>()
    expectTypeOf<Attribute>().toEqualTypeOf<ReturnType<typeof attributeToJson>>()
    expectTypeOf<ConsentType>().toEqualTypeOf<StoredConsentType>()
  })
})

describe('a client without a schema', () => {
  it('accepts any stack and any attribute, whose values are unknown', () => {
    expectTypeOf(client.people.get).returns.resolves.toExtend<Person>()
    never(async () => {
      const order = await client.stack('anything').create({ attribute_values: { total: 'x' } })
      expectTypeOf(order.attribute_values.total).toBeUnknown()
      expectTypeOf(order).toExtend<StackRecord>()
    })
  })

  it('does not compile with a misspelt field or a value of another type', () => {
    // @ts-expect-error: the field is called first_name
    never(() => client.people.create({ firstname: 'Ada' }))
    // @ts-expect-error: a text
    never(() => client.people.create({ first_name: 1 }))
    // @ts-expect-error: records have no profile
    never(() => client.stack('orders').create({ first_name: 'Ada' }))
    // @ts-expect-error: an upsert needs an external identifier
    never(() => client.people.upsert({ first_name: 'Ada' }))
    // @ts-expect-error: a definition needs a kind
    never(() => client.schema.stacks.create({ key: 'orders' }))
  })

  it('requires exactly one of token, getToken and clientCredentials', () => {
    expectTypeOf<{ url: string; token: string }>().toExtend<ClientOptions>()
    expectTypeOf<{ url: string; getToken: () => string }>().toExtend<ClientOptions>()
    expectTypeOf<{ url: string }>().not.toExtend<ClientOptions>()
    expectTypeOf<{ url: string; token: string; getToken: () => string }>().not.toExtend<ClientOptions>()
  })
})

describe('a client with a schema', () => {
  it('types the declared attributes of a write, accepts null, and leaves others unknown', () => {
    never(() => shop.stack('orders').create({ attribute_values: { total: 1, tags: ['a'], other: {}, raw: [] } }))
    never(() => shop.stack('orders').patch('o', { attribute_values: { total: null } }))
    // @ts-expect-error: total is a number
    never(() => shop.stack('orders').create({ attribute_values: { total: 'x' } }))
    // @ts-expect-error: tags are many
    never(() => shop.stack('orders').patch('o', { attribute_values: { tags: 'a' } }))
    // @ts-expect-error: the body of an operation is typed the same
    never(() => shop.stack('orders').batch([{ op: 'create', body: { attribute_values: { total: 'x' } } }]))
    // @ts-expect-error: there is no such stack
    never(() => shop.stack('ordres'))
  })

  it('requires the required attributes of a create, and refuses to clear them', () => {
    const products = shop.stack('products')
    never(() => products.create({ attribute_values: { sku: 'a', maker: 'ada', other: 1 } }))
    never(() => products.batch([{ op: 'create', body: { attribute_values: { sku: 'a', maker: { id: 'u' } } } }]))
    never(() => products.patch('p', { attribute_values: { price: null } }))
    never(() => products.upsert({ external_id: 'p', attribute_values: { price: 1 } }))
    // A value that was stored before the rule may be missing.
    never(async () => products.replace('p', writable(await products.get('p'))))
    // @ts-expect-error: sku and maker are required
    never(() => products.create({ external_id: 'p' }))
    // @ts-expect-error: maker is required
    never(() => products.create({ attribute_values: { sku: 'a' } }))
    // @ts-expect-error: maker is required
    never(() => products.batch([{ op: 'create', body: { attribute_values: { sku: 'a' } } }]))
    // @ts-expect-error: sku is a text
    never(() => products.create({ attribute_values: { sku: 1, maker: 'ada' } }))
    // @ts-expect-error: sku is required
    never(() => products.patch('p', { attribute_values: { sku: null } }))
  })

  it('changes single links and elements of many by patch and upsert only', () => {
    never(() =>
      shop.people.patch('a', { attribute_values: { orders: { $add: ['o', 1], $remove: [{ record_id: 'r' }] } } }),
    )
    never(() => shop.people.upsert({ external_id: 'a', attribute_values: { orders: { $remove: ['o'] } } }))
    never(() =>
      shop.people.batch([{ op: 'patch', external_id: 'a', body: { attribute_values: { orders: { $add: ['o'] } } } }]),
    )
    never(() => client.people.patch('a', { attribute_values: { friends: { $add: ['bo'] } } }))
    // @ts-expect-error: the referrer is one
    never(() => shop.people.patch('a', { attribute_values: { referrer: { $add: ['b'] } } }))
    never(() => shop.stack('orders').patch('o', { attribute_values: { tags: { $add: ['a'] } } }))
    // @ts-expect-error: tags are texts
    never(() => shop.stack('orders').patch('o', { attribute_values: { tags: { $add: [1] } } }))
    // @ts-expect-error: a list
    never(() => shop.people.patch('a', { attribute_values: { orders: { $add: 'o' } } }))
    // @ts-expect-error: a replacement has all links
    never(() => shop.people.replace('a', { attribute_values: { orders: { $add: ['o'] } } }))
    // @ts-expect-error: a creation has all links
    never(() => shop.people.create({ attribute_values: { orders: { $add: ['o'] } } }))
  })

  it('requires a value that a person is recognized by', () => {
    const email = 'ada@example.com'
    const match = ['email', 'mobile'] as const
    never(() => shop.people.upsert({ external_id: 'ada' }))
    never(() => shop.people.upsert({ match: ['email'], email }))
    never(() => shop.people.upsert({ match: ['external_id', 'email'], external_id: 'ada' }))
    never(() => client.people.upsert({ match, mobile_number: '+39333000', external_id: 'ada' }))
    never(() => client.people.batch([{ op: 'upsert', external_id: 'ada', body: {} }]))
    never(() => client.people.batch([{ op: 'upsert', body: { email } }], { match: ['email'] }))
    never(() => client.people.batch([{ op: 'upsert', body: { mobile_number: '1' } }], { match, atomic: true }))
    // @ts-expect-error: no email
    never(() => client.people.upsert({ match: ['email'], external_id: 'ada' }))
    // @ts-expect-error: the email is null
    never(() => client.people.upsert({ match: ['email'], email: null }))
    // @ts-expect-error: neither an email nor a number
    never(() => client.people.upsert({ match, external_id: 'ada' }))
    // @ts-expect-error: no external identifier
    never(() => client.people.upsert({ email }))
    // @ts-expect-error: no email
    never(() => client.people.batch([{ op: 'upsert', external_id: 'ada', body: {} }], { match: ['email'] }))
    // @ts-expect-error: no external identifier
    never(() => client.people.batch([{ op: 'upsert', body: { email } }]))
    // @ts-expect-error: there is no such key
    never(() => client.people.upsert({ match: ['mail'], email }))
  })

  it('accepts names as values of relationships', () => {
    never(() => shop.people.create({ attribute_values: { referrer: 'ada', orders: ['o', 1, { external_id: 'p' }] } }))
    never(() => shop.people.create({ attribute_values: { referrer: 7, orders: 'o' } }))
    // @ts-expect-error: only one value
    never(() => shop.people.create({ attribute_values: { referrer: ['ada'] } }))
    // @ts-expect-error: not a name
    never(() => shop.people.create({ attribute_values: { referrer: true } }))
    // @ts-expect-error: people have no record_id
    never(() => shop.people.create({ attribute_values: { referrer: { record_id: '65f0c0ffee65f0c0ffee65f0' } } }))
  })

  it('types the declared attributes of a read', () => {
    never(async () => {
      const { attribute_values } = await shop.people.get('ada')
      expectTypeOf(attribute_values.age).toEqualTypeOf<number | undefined>()
      expectTypeOf(attribute_values.referrer).toEqualTypeOf<string | { id: string } | undefined>()
      expectTypeOf(attribute_values.orders).toEqualTypeOf<(string | { record_id: string })[] | undefined>()
      expectTypeOf(attribute_values.other).toBeUnknown()
      const order = await shop.stack('orders').get('o')
      expectTypeOf(order.stack_key).toEqualTypeOf<'orders'>()
      expectTypeOf(order.attribute_values.tags).toEqualTypeOf<string[] | undefined>()
    })
  })

  it('types related entities by their owner', () => {
    never(async () => {
      for await (const order of shop.people.related('ada', { target: 'orders' })) {
        expectTypeOf(order.attribute_values.total).toEqualTypeOf<number | undefined>()
        expectTypeOf(order.record_id).toBeString()
      }
      for await (const person of shop.stack('orders').related({ id: 'o' }, { target: 'people' }))
        expectTypeOf(person.attribute_values.age).toEqualTypeOf<number | undefined>()
      // @ts-expect-error: there is no such stack
      shop.people.related('ada', { target: 'ordres' })
    })
  })

  it('has no methods that change records of an event stack', () => {
    const visits = shop.stack('visits')
    never(() => visits.create({ attribute_values: { page: '/' } }))
    never(() => visits.delete('v'))
    // @ts-expect-error: immutable
    never(() => visits.patch('v', {}))
    // @ts-expect-error: immutable
    never(() => visits.upsert({ external_id: 'v' }))
  })

  it('accepts a read entity as a body after writable()', () => {
    never(async () => {
      await shop.people.replace('ada', writable(await shop.people.get('ada')))
      await shop.stack('orders').replace('o', writable(await shop.stack('orders').get('o')))
      await client.people.replace('ada', writable(await client.people.get('ada')))
    })
  })
})

describe('changes', () => {
  it('are selected by declared stacks and known subjects', () => {
    never(() =>
      shop.changes.follow({ stack: ['orders', 'visits'], subject: 'record', operation: ['create', 'delete'] }),
    )
    // @ts-expect-error: there is no such stack
    never(() => shop.changes.follow({ stack: 'ordres' }))
    // @ts-expect-error: the subject is called person
    never(() => client.changes.list({ subject: 'people' }).page())
    never(async () => {
      for await (const change of client.changes.follow()) expectTypeOf(change).toEqualTypeOf<Change>()
    })
  })

  it('of the past are read by a time or a version, not both, with the types of the schema', () => {
    never(async () => {
      const order = await shop.stack('orders').get('o', { at: new Date() })
      expectTypeOf(order.attribute_values.total).toEqualTypeOf<number | undefined>()
      expectTypeOf(order.as_of?.sequence).toEqualTypeOf<number | undefined>()
      await shop.stack('visits').restore({ id: 'v' })
      // @ts-expect-error: either at or version
      await client.people.get('ada', { at: '2027-01-01T00:00:00Z', version: 1 })
    })
  })

  it('of a webhook are told apart by their type', () => {
    never(async () => {
      const event = await verifyWebhook('', {}, '')
      if (event.type === 'person.merged') {
        expectTypeOf(event.data.subject).toEqualTypeOf<'person'>()
        expectTypeOf(event.data.id).toBeString()
      }
      if (event.type === 'stack.updated') expectTypeOf(event.data.id).toBeNumber()
      if (event.type === 'webhook.test') expectTypeOf(event.data).toEqualTypeOf<{ webhook_id: number }>()
      // @ts-expect-error: an event is in the past tense
      if (event.type === 'person.update') console.log(event)
    })
  })

  it('of a webhook are those of its events, which name a subject', () => {
    const url = 'https://receiver.example/kith'
    never(() => client.webhooks.create({ url, events: ['person.erased', 'segment.*', 'consent.*'] }))
    never(async () => client.webhooks.update(1, { events: (await client.webhooks.get(1)).events }))
    // @ts-expect-error: all of no subject
    never(() => client.webhooks.create({ url, events: ['*'] }))
    // @ts-expect-error: the subject is called person
    never(() => client.webhooks.update(1, { events: ['people.created'] }))
  })

  it('of a webhook have no values with the payload ids', () => {
    never(async () => {
      const full = await verifyWebhook('', {}, '')
      if (full.type !== 'webhook.test') expectTypeOf(full.data).toExtend<Change>()
      const ids = await verifyWebhook<'ids'>('', new Headers(), [''])
      // @ts-expect-error: there are no values
      if (ids.type !== 'webhook.test') console.log(ids.data.after)
    })
  })
})

describe('results', () => {
  it('of a dry run tell what a write would do', () => {
    never(async () => {
      expectTypeOf(await client.people.create({}, { dryRun: true })).toEqualTypeOf<EntityDryRun>()
      expectTypeOf(await client.people.patch('a', {}, { dryRun: true })).toEqualTypeOf<EntityDryRun>()
      expectTypeOf(await client.people.delete('a', { dryRun: true })).toEqualTypeOf<EntityDryRun>()
      expectTypeOf(await client.people.restore({ id: 'a' }, { dryRun: true })).toEqualTypeOf<EntityDryRun>()
      expectTypeOf(await client.people.create({}, { ifMatch: '*' })).toExtend<Person>()
      expectTypeOf(await client.people.delete('a')).toEqualTypeOf<true>()
      const dryRun = Math.random() < 0.5
      expectTypeOf(await client.people.delete('a', { dryRun })).toEqualTypeOf<true | EntityDryRun>()
    })
  })

  it('of an update are true, or the entity if representation is set', () => {
    never(async () => {
      expectTypeOf(await client.people.patch('a', {})).toEqualTypeOf<true>()
      expectTypeOf(await client.people.patch('a', {}, { ifMatch: 1 })).toEqualTypeOf<true>()
      expectTypeOf(await client.people.patch('a', {}, { representation: true })).toExtend<Person>()
      const representation = Math.random() < 0.5
      expectTypeOf((await client.people.replace('a', {}, { representation })) === true).toBeBoolean()
    })
  })

  it('of definitions are definitions', () => {
    expectTypeOf(client.schema.stacks.get).returns.resolves.toEqualTypeOf<Stack>()
    expectTypeOf(client.schema.attributes.list).returns.toEqualTypeOf<Listing<Attribute>>()
    never(async () => expectTypeOf(await client.schema.consentTypes.patch(1, {})).toEqualTypeOf<ConsentType>())
    never(() => expectTypeOf(client.people.list()).toExtend<Listing<Person>>())
  })
})

it('an error is narrowed to its code', () => {
  const error: unknown = new Error()
  if (isKithError(error)) expectTypeOf(error).toExtend<KithError>()
  if (isKithError(error, 'not_found')) expectTypeOf(error.code).toEqualTypeOf<'not_found'>()
  // @ts-expect-error: there is no such code
  isKithError(error, 'missing')
})

describe('a filter without a schema', () => {
  it('accepts the known fields and operators', () => {
    expectTypeOf<{ email: { $ends_with: '@example.org' } }>().toExtend<Filter>()
    expectTypeOf<{
      $not: { 'attribute_values.orders': { $some: { 'attribute_values.total': { $gt: 1 } } } }
    }>().toExtend<Filter>()
    expectTypeOf<{ consents: { $some: { consent_type_id: 1; channel: 'email'; state: true } } }>().toExtend<Filter>()
    expectTypeOf<{ contactable: { consent_type_id: 1; channel: 'email' } }>().toExtend<Filter>()
    expectTypeOf<{ contactable: { channel: 'email' } }>().not.toExtend<Filter>()
    expectTypeOf<{ email: { $like: 'x' } }>().not.toExtend<Filter>()
    // @ts-expect-error: there is no such field
    never(() => client.people.filter({ mail: 'x' }))
  })

  it('checks operands by the types of the profile fields', () => {
    never(() =>
      client.people.filter({ state: { $in: ['active', null] }, email_consent: true, created_at: { $gte: '' } }),
    )
    // @ts-expect-error: there is no such state
    never(() => client.people.filter({ state: 'deleted' }))
    // @ts-expect-error: a text
    never(() => client.people.filter({ email: { $in: ['a', 1] } }))
    // @ts-expect-error: a boolean
    never(() => client.people.filter({ $or: [{ sms_consent: 'true' }] }))
    // @ts-expect-error: booleans have no order
    never(() => client.people.filter({ sms_consent: { $gt: false } }))
    // @ts-expect-error: times are not searched
    never(() => client.people.filter({ created_at: { $contains: '2026' } }))
  })
})

describe('a filter with a schema', () => {
  it('accepts declared keys with operands of their types', () => {
    never(() => shop.people.filter({ 'attribute_values.age': 5, 'attribute_values.vip': { $neq: true } }))
    never(() => shop.people.filter({ 'attribute_values.age': { $in: [1, null], $lt: 9, $exists: true } }))
    never(() => shop.people.filter({ 'attribute_values.born': { $ends_with: '-02-29' }, first_name: null }))
    never(() => shop.people.filter({ 'attribute_values.seen_at': { $gt: '2026-01-01T00:00:00Z', $eq: ['x'] } }))
    never(() => shop.stack('orders').filter({ 'attribute_values.tags': ['a', 'b'], record_id: { $in: ['x'] } }))
    never(() => shop.stack('orders').filter({ 'attribute_values.raw': { $eq: { a: [1] }, $gte: 1, $contains: 'x' } }))
  })

  it('rejects a misspelt key at every depth', () => {
    // @ts-expect-error: it is called age
    never(() => shop.people.filter({ 'attribute_values.agee': 5 }))
    // @ts-expect-error: it is called age
    never(() => shop.people.filter({ $and: [{ $not: { 'attribute_values.agee': { $gt: 5 } } }] }))
    // @ts-expect-error: records have no email
    never(() => shop.stack('orders').filter({ email: 'x' }))
    // @ts-expect-error: people have no record_id
    never(() => shop.people.filter({ record_id: 'x' }))
    // @ts-expect-error: records have no consents
    never(() => shop.stack('orders').filter({ consents: { $some: {} } }))
    // @ts-expect-error: there is no such channel
    never(() => shop.people.filter({ consents: { $some: { channel: 'push' } } }))
  })

  it('rejects an operand of another type in every operator', () => {
    // @ts-expect-error: a number
    never(() => shop.people.filter({ 'attribute_values.age': '5' }))
    // @ts-expect-error: a number
    never(() => shop.people.filter({ 'attribute_values.age': { $gte: '5' } }))
    // @ts-expect-error: numbers
    never(() => shop.people.filter({ 'attribute_values.age': { $nin: [5, '6'] } }))
    // @ts-expect-error: one number
    never(() => shop.people.filter({ 'attribute_values.age': [5] }))
    // @ts-expect-error: numbers are not searched
    never(() => shop.people.filter({ 'attribute_values.age': { $contains: '5' } }))
    // @ts-expect-error: a boolean
    never(() => shop.people.filter({ $not: { 'attribute_values.vip': 'true' } }))
    // @ts-expect-error: booleans have no order
    never(() => shop.people.filter({ 'attribute_values.vip': { $gt: false } }))
    // @ts-expect-error: a text
    never(() => shop.people.filter({ 'attribute_values.born': { $lt: 1990 } }))
    // @ts-expect-error: times are not searched
    never(() => shop.people.filter({ 'attribute_values.seen_at': { $starts_with: '2026' } }))
    // @ts-expect-error: texts
    never(() => shop.stack('orders').filter({ 'attribute_values.tags': ['a', 1] }))
    // @ts-expect-error: numbers and booleans have no targets
    never(() => shop.people.filter({ 'attribute_values.age': { $some: {} } }))
  })

  it('types nested filters by the targets of relationships', () => {
    never(() => shop.people.filter({ 'attribute_values.referrer': 'ada', 'attribute_values.orders': ['o', null] }))
    never(() =>
      shop.people.filter({
        'attribute_values.referrer': {
          $none: { 'attribute_values.orders': { $some: { 'attribute_values.total': 1 } } },
        },
      }),
    )
    // @ts-expect-error: a name
    never(() => shop.people.filter({ 'attribute_values.referrer': 7 }))
    // @ts-expect-error: one name
    never(() => shop.people.filter({ 'attribute_values.referrer': ['ada'] }))
    // @ts-expect-error: the target is an order
    never(() => shop.people.filter({ 'attribute_values.orders': { $some: { 'attribute_values.age': 1 } } }))
    const byText = { 'attribute_values.orders': { $some: { 'attribute_values.total': '' } } }
    // @ts-expect-error: a number, two relationships away
    never(() => shop.people.filter({ 'attribute_values.referrer': { $some: byText } }))
  })

  it('types incoming relationships by the owner and by where they lead', () => {
    never(() =>
      shop.people.filter({
        'incoming.people.referrer': { $count: { $gte: 2 }, $where: { 'attribute_values.age': 5 } },
      }),
    )
    never(() =>
      shop.stack('orders').filter({ 'incoming.people.orders': { $none: {}, $max: { 'attribute_values.age': 9 } } }),
    )
    never(() =>
      client.people.filter({ 'incoming.orders.buyer': { $sum: { 'attribute_values.total': { $gte: 100 } } } }),
    )
    // @ts-expect-error: leads to orders
    never(() => shop.people.filter({ 'incoming.people.orders': { $none: {} } }))
    // @ts-expect-error: a number is no relationship
    never(() => shop.people.filter({ 'incoming.people.age': { $none: {} } }))
    // @ts-expect-error: a field of people is counted
    never(() => shop.people.filter({ 'incoming.people.referrer': { $count: '2' } }))
    // @ts-expect-error: a number of the linking people
    never(() => shop.people.filter({ 'incoming.people.referrer': { $some: { 'attribute_values.age': '5' } } }))
  })

  it('of an organization without attributes accepts no attribute', () => {
    const empty = createClient<{ people: Record<never, never>; stacks: Record<never, never> }>({
      url: 'https://kith.test',
      token: '',
    })
    // @ts-expect-error: nothing is declared
    never(() => empty.people.filter({ 'attribute_values.age': 1 }))
  })
})
