import fc from 'fast-check'
import { readSerialized } from '../../src/entities/entity-reader.ts'
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
export const long = ['a', 'b', ''].map(end => 'x'.repeat(70) + end)
export const numbers = [0, 1, 2, 2.5, -1, -2.25, 9007199254740991, 1.5e-7, 0.1]
export const dates = ['2020-02-29', '2021-01-01', '0001-01-01', '9999-12-31']
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
export const people = Array.from({ length: 12 }, (_, index) => `p${index}`)
const orders = Array.from({ length: 8 }, (_, index) => `o${index}`)

export const from = <T>(values: readonly T[]) => fc.constantFrom(...values)
export const texts = from([...words, ...long, ...dates, ...moments, ...wrong, 'p1', 'o1'])
export const json = fc.oneof(texts, from(numbers), fc.boolean(), from(structures))
export const many = <T>(values: fc.Arbitrary<T>) => fc.array(values, { maxLength: 3 })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 3, nil: undefined })
const given = (values: object) => JSON.parse(JSON.stringify(values)) as Record<string, unknown>
const record = (model: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(Object.fromEntries(Object.entries(model).map(([key, value]) => [key, maybe(value)]))).map(given)

/** Values from before the schema: of other types, and plain where there will be links. */
const earlyValues = record({
  ...{ city: json, score: json, joined: json, born: json, tags: json, moments: json, mixed: json, any: json },
})
const personValues = record({
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
  moments: many(from(moments)),
  raw: json,
  any: json,
  'dotted.key "\' $1': from(words),
})
const orderValues = record({ total: from(numbers), buyer: from(people), any: json })
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
  await must(send('POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'email' }] }))
  for (const key of ['orders', 'visits']) await must(send('POST', '/v1/schema/stacks', { key, kind: 'item' }))
  const mentor = await attribute(send, { key: 'mentor', owner: 'people', type: 'person', cardinality: 'many' })
  for (const [index, values] of sample(earlyValues, 15, seed).entries())
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
  await attribute(send, { ...plain, key: 'moments', type: 'datetime', cardinality: 'many' })
  await attribute(send, { key: 'raw', owner: 'people', type: 'json' })
  await attribute(send, { key: 'counts', owner: 'people', type: 'number', cardinality: 'many' })
  await attribute(send, { key: 'referrer', owner: 'people', type: 'person' })
  await attribute(send, { key: 'mixed', owner: 'people', type: 'person' })
  await attribute(send, { key: 'friends', owner: 'people', type: 'person', cardinality: 'many' })
  await attribute(send, { key: 'bought', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' })
  await attribute(send, { key: 'total', owner: 'orders', type: 'number', indexed: true })
  await attribute(send, { key: 'buyer', owner: 'orders', type: 'person' })
  const bodies = sample(fc.record({ profile, values: personValues }), 30, seed)
  for (const [index, { profile, values }] of bodies.entries())
    await must(
      send('POST', '/v1/people', {
        ...profile,
        external_id: index < 24 ? `p${index}` : null,
        attribute_values: values,
      }),
    )
  for (const [index, values] of sample(orderValues, 10, seed).entries())
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
    const inOrder = 'select id from entities where organization_id = $1 and stack_id = $2 order by id'
    const ids = (await sql<{ id: string }>(inOrder, [organization_id, stack_id])).map(({ id }) => id)
    const found = await readSerialized(db, organization_id, stack_id, { by: 'id', identifiers: ids })
    const shown = new Map(found.map(({ identifier, json }) => [identifier, JSON.parse(json!)]))
    for (const id of ids) reads.set(id, { stack_id, id, shown: shown.get(id), links: await linksOf(id) })
  }
  return { definitions, reads }

  async function linksOf(id: string): Promise<Read['links']> {
    // What a link points to may be gone.
    const inOrder = `select l.attribute_id, json_agg(l.target_id order by l.position) as targets
      from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
      where l.organization_id = $1 and l.source_id = $2 group by l.attribute_id`
    const links = await sql<{ attribute_id: number; targets: string[] }>(inOrder, [organization_id, id])
    return new Map(links.map(({ attribute_id, targets }) => [attribute_id, targets]))
  }
}
