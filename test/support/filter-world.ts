import fc from 'fast-check'
import { readShown } from '../../src/entities/shown.ts'
import { currentDefinitions } from '../../src/organizations/definitions.ts'
import type { Read, World } from './filter-evaluator.ts'
import type { Send, Service } from './service.ts'

export const words = [
  'Rome',
  'rome',
  'ROMA',
  'Ro',
  '',
  'é',
  'É',
  '\u{1d4b3}',
  '\uff21',
  'ΣΑΣ',
  'σας',
  'a_c',
  'a%c',
  "o'x",
]
const long = ['a', 'b', ''].map(end => 'x'.repeat(70) + end)
const numbers = [0, 1, 2, 2.5, -1, -2.25, 9007199254740991, 1.5e-7, 0.1]
const dates = ['2020-02-29', '2021-01-01', '0001-01-01', '9999-12-31']
export const moments = [
  '2020-02-29T12:00:00Z',
  '2020-02-29T13:00:00+01:00',
  '2020-02-29t12:00:00.000z',
  '2020-02-29T12:00:00.0000001Z',
  '2020-02-29T00:00:00+23:59',
  '1969-12-31T23:59:59.5Z',
  '0001-01-01T00:00:00+23:59',
]
const wrong = ['2021-02-29', '2021-02-29T12:00:00Z', '2020-02-29T24:00:00Z', '0000-01-01']
const structures = [[], ['Rome'], [1, null], { a: 1 }, { a: 1, b: [null] }, [['Rome']]]
const people = Array.from({ length: 12 }, (_, index) => `p${index}`)
const orders = Array.from({ length: 8 }, (_, index) => `o${index}`)

const from = <T>(values: readonly T[]) => fc.constantFrom(...values)
const texts = from([...words, ...long, ...dates, ...moments, ...wrong, 'p1', 'o1'])
export const json = fc.oneof(texts, from(numbers), fc.boolean(), from(structures))
const many = <T>(values: fc.Arbitrary<T>) => fc.array(values, { maxLength: 3 })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 3, nil: undefined })
const given = (values: object) => JSON.parse(JSON.stringify(values)) as Record<string, unknown>
const record = (model: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(Object.fromEntries(Object.entries(model).map(([key, value]) => [key, maybe(value)]))).map(given)

/** Values from before the schema: of other types, and plain where there will be links. */
const early_values = record({ city: json, score: json, joined: json, born: json, tags: json, mixed: json, any: json })
const person_values = record({
  city: fc.oneof(from(words), from(long)),
  score: from(numbers),
  joined: from(moments),
  born: from(dates),
  vip: fc.boolean(),
  tags: many(from([...words, ...long])),
  counts: many(from(numbers)),
  referrer: from(people),
  friends: many(from(people)),
  bought: many(from(orders)),
  any: json,
  'dotted.key "\' $1': from(words),
})
const order_values = record({ total: from(numbers), buyer: from(people), any: json })
const profile = record({
  first_name: from(words.filter(word => word !== '')),
  email: from(['ada@example.org', 'Ada@example.org', 'bob@example.com']),
  date_of_birth: from(['1990-01-01', '2000-02-29']),
  push_notification_consent: fc.boolean(),
  email_consent: fc.boolean(),
})

const attribute = (send: Send, body: object) => must(send('POST', '/v1/schema/attributes', body))

async function must(replying: ReturnType<Send>) {
  const reply = await replying
  if (reply.status >= 300) throw new Error(JSON.stringify(reply.body))
  return reply.body.data
}

const sample = <T>(values: fc.Arbitrary<T>, count: number, seed: number) => fc.sample(values, { numRuns: count, seed })

/** Some dozens of people and orders with every kind of value, stored before and after their keys were declared. */
export async function makeWorld(organization: { send: Send }, seed: number): Promise<void> {
  const { send } = organization
  for (const key of ['orders', 'visits']) await must(send('POST', '/v1/schema/stacks', { key, kind: 'item' }))
  const mentor = await attribute(send, { key: 'mentor', owner: 'people', type: 'person', cardinality: 'many' })
  for (const [index, values] of sample(early_values, 15, seed).entries())
    await must(
      send('POST', '/v1/people', {
        external_id: `early${index}`,
        attribute_values: { ...values, mentor: index % 3 ? ['p1', 'p2'] : [] },
      }),
    )
  await must(send('PATCH', `/v1/schema/attributes/${mentor.id}`, { state: 'archived' }))
  const plain = { owner: 'people', indexed: true }
  await attribute(send, { ...plain, key: 'city', type: 'text' })
  await attribute(send, { ...plain, key: 'score', type: 'number' })
  await attribute(send, { ...plain, key: 'joined', type: 'datetime' })
  await attribute(send, { ...plain, key: 'born', type: 'date' })
  await attribute(send, { ...plain, key: 'vip', type: 'boolean' })
  await attribute(send, { ...plain, key: 'tags', type: 'text', cardinality: 'many' })
  await attribute(send, { key: 'counts', owner: 'people', type: 'number', cardinality: 'many' })
  await attribute(send, { key: 'referrer', owner: 'people', type: 'person' })
  await attribute(send, { key: 'mixed', owner: 'people', type: 'person' })
  await attribute(send, { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' })
  await attribute(send, { key: 'bought', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' })
  await attribute(send, { key: 'total', owner: 'orders', type: 'number', indexed: true })
  await attribute(send, { key: 'buyer', owner: 'orders', type: 'person' })
  const bodies = sample(fc.record({ profile, values: person_values }), 30, seed)
  for (const [index, { profile, values }] of bodies.entries())
    await must(
      send('POST', '/v1/people', {
        ...profile,
        external_id: index < 24 ? `p${index}` : null,
        attribute_values: values,
      }),
    )
  for (const [index, values] of sample(order_values, 10, seed).entries())
    await must(send('POST', '/v1/stacks/orders', { external_id: `o${index}`, attribute_values: values }))
  // Links to somebody who lost the name, and to somebody who is gone.
  await must(send('PATCH', '/v1/people/p3', { external_id: null }))
  await must(send('DELETE', '/v1/people/p4'))
  await must(send('PATCH', '/v1/people/early1', { attribute_values: { mixed: 'p5', mentor: 'plain' } }))
}

/** Everything that stands, as reads show it. */
export async function readWorld({ db, sql }: Service, organization_id: number): Promise<World> {
  const definitions = await currentDefinitions(db, organization_id)
  const reads = new Map<string, Read>()
  for (const stack_id of [0, ...definitions.stacks.map(({ id }) => id)]) {
    const in_order = 'select id from entities where organization_id = $1 and stack_id = $2 order by id'
    const ids = (await sql<{ id: string }>(in_order, [organization_id, stack_id])).map(({ id }) => id)
    const found = await readShown(db, organization_id, stack_id, { by: 'id', identifiers: ids })
    const shown = new Map(found.map(({ identifier, json }) => [identifier, JSON.parse(json!)]))
    for (const id of ids) reads.set(id, { stack_id, id, shown: shown.get(id), links: await linksOf(id) })
  }
  return { definitions, reads }

  async function linksOf(id: string): Promise<Read['links']> {
    // What a link points to may be gone.
    const in_order = `select l.attribute_id, json_agg(l.target_id order by l.position) as targets
      from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
      where l.organization_id = $1 and l.source_id = $2 group by l.attribute_id`
    const links = await sql<{ attribute_id: number; targets: string[] }>(in_order, [organization_id, id])
    return new Map(links.map(({ attribute_id, targets }) => [attribute_id, targets]))
  }
}

const ranged = (operand: fc.Arbitrary<unknown>) =>
  fc.record({ operator: from(['$lt', '$lte', '$gt', '$gte']), operand })
const equal = (operand: fc.Arbitrary<unknown>) => fc.record({ operator: from(['$eq', '$neq']), operand })
const listed = (operand: fc.Arbitrary<unknown>) =>
  fc.record({ operator: from(['$in', '$nin']), operand: fc.array(operand, { maxLength: 4 }) })
const searched = fc.record({
  operator: from(['$contains', '$starts_with', '$ends_with']),
  operand: from([...words, 'o', 'x', 'α', 'Σ', '2020']),
})
const existing = fc.record({ operator: fc.constant('$exists'), operand: fc.boolean() })

const nullable = fc.option(json, { nil: null })
const scalars = fc.oneof(texts, from(numbers))
const bare = fc.oneof(texts, from(numbers), fc.boolean(), fc.constant(null), from([[], ['Rome']]))
const tests = fc.oneof(
  fc
    .array(fc.oneof(equal(nullable), ranged(scalars), listed(nullable), searched, existing), {
      minLength: 1,
      maxLength: 2,
    })
    .map(made => Object.fromEntries(made.map(({ operator, operand }) => [operator, operand]))),
  bare,
)
const instant = from(moments)
const moment_tests = fc
  .oneof(equal(fc.option(instant, { nil: null })), ranged(instant), listed(instant), existing)
  .map(({ operator, operand }) => ({ [operator]: operand }))

const consents = fc
  .record({ consent_type_id: from([1, 2]), channel: from(['email', 'sms']), state: fc.boolean() }, { requiredKeys: [] })
  .map(wanted => ({ consents: { $some: wanted } }))

const field = (names: string[], operand: fc.Arbitrary<unknown>) =>
  fc.record({ name: from(names), operand }).map(({ name, operand }) => ({ [name]: operand }))

const person_fields = [
  ...['external_id', 'id', 'first_name', 'last_name', 'email', 'date_of_birth', 'state'],
  ...['email_consent', 'sms_consent', 'push_notification_consent'],
]
const person_keys = [
  ...['city', 'score', 'joined', 'born', 'vip', 'tags', 'counts', 'any', 'dotted.key "\' $1', 'nowhere', '__proto'],
  ...['referrer', 'friends', 'bought', 'mixed', 'mentor'],
].map(key => `attribute_values.${key}`)

type Depth = { levels: number; hops: number }

const quantified = (name: string, filters: fc.Arbitrary<unknown>) =>
  fc
    .record({ quantifier: from(['$some', '$none', '$every']), filters })
    .map(({ quantifier, filters }) => ({ [`attribute_values.${name}`]: { [quantifier]: filters } }))

function combined(leaf: fc.Arbitrary<unknown>, deeper: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.array(deeper, { maxLength: 3 }).map($and => ({ $and })) },
    { weight: 2, arbitrary: fc.array(deeper, { maxLength: 3 }).map($or => ({ $or })) },
    { weight: 2, arbitrary: deeper.map($not => ({ $not })) },
  )
}

/** Filters on people that the grammar allows, not deeper than it allows. */
export function personFilters({ levels, hops }: Depth = { levels: 4, hops: 3 }): fc.Arbitrary<unknown> {
  const plain = fc.oneof(
    { weight: 3, arbitrary: field(person_fields, tests) },
    { weight: 6, arbitrary: field(person_keys, tests) },
    { weight: 1, arbitrary: field(['created_at', 'updated_at'], moment_tests) },
    { weight: 1, arbitrary: consents },
  )
  if (levels === 1) return plain
  const far = { levels: levels - 1, hops: hops - 1 }
  const across =
    hops === 0
      ? plain
      : fc.oneof(
          quantified('referrer', personFilters(far)),
          quantified('friends', personFilters(far)),
          quantified('mixed', personFilters(far)),
          quantified('bought', orderFilters(far)),
        )
  const leaf = fc.oneof({ weight: 3, arbitrary: plain }, { weight: 2, arbitrary: across })
  return combined(leaf, personFilters({ levels: levels - 1, hops }))
}

/** Filters on orders that the grammar allows, not deeper than it allows. */
export function orderFilters({ levels, hops }: Depth = { levels: 4, hops: 3 }): fc.Arbitrary<unknown> {
  const plain = fc.oneof(
    field(['external_id', 'record_id', 'state'], tests),
    field(
      ['total', 'buyer', 'any'].map(key => `attribute_values.${key}`),
      tests,
    ),
  )
  if (levels === 1) return plain
  const across = hops === 0 ? plain : quantified('buyer', personFilters({ levels: levels - 1, hops: hops - 1 }))
  return combined(fc.oneof(plain, across), orderFilters({ levels: levels - 1, hops }))
}

/** One condition on an indexed key with operands of its type, those that are stored among them. */
export const typedFilters: fc.Arbitrary<unknown> = fc.oneof(
  ...[
    { key: 'city', operand: from([...words, ...long]) },
    { key: 'tags', operand: from([...words, ...long]) },
    { key: 'score', operand: from(numbers) },
    { key: 'joined', operand: instant },
    { key: 'born', operand: from([...dates, ...wrong]) },
    { key: 'vip', operand: fc.boolean() },
    { key: 'referrer', operand: from(people) },
    { key: 'mixed', operand: from([...people, ...words]) },
  ].map(({ key, operand }) =>
    fc
      .array(key === 'vip' ? equal(operand) : fc.oneof(equal(operand), ranged(operand), listed(operand)), {
        minLength: 1,
        maxLength: 2,
      })
      .map(made => ({
        [`attribute_values.${key}`]: Object.fromEntries(made.map(({ operator, operand }) => [operator, operand])),
      })),
  ),
)
