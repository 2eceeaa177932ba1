import fc from 'fast-check'
import type { Question } from '../../src/consents/answers.ts'
import { contextOf } from '../../src/db/context.ts'
import { readSerialized } from '../../src/entities/read/entity-reader.ts'
import { currentDefinitions } from '../../src/organizations/definitions.ts'
import { type Dataset, refusalKey, type StoredEntity } from './filter-evaluator.ts'
import type { Send, Service } from './service.ts'
import { declare, expectSuccess } from './shop.ts'

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
  'ΣΑ',
  'σασα',
  'a_c',
  'a%c',
  "o'x",
]
export const longTexts = ['a', 'b', ''].map(end => 'x'.repeat(70) + end)
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
export const texts = from([...words, ...longTexts, ...dates, ...moments, ...wrong, 'p1', 'o1'])
export const json = fc.oneof(texts, from(numbers), fc.boolean(), from(structures))
export const many = <T>(values: fc.Arbitrary<T>) => fc.array(values, { maxLength: 3 })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 3, nil: undefined })
const withoutUndefined = (values: object) => JSON.parse(JSON.stringify(values)) as Record<string, unknown>
const record = (model: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(Object.fromEntries(Object.entries(model).map(([key, value]) => [key, maybe(value)]))).map(withoutUndefined)

/** Values from before the schema: of other types, and plain values in later relationships. */
const earlyValues = record({
  ...{ city: json, score: json, joined: json, born: json, tags: json, moments: json, mixed: json, any: json },
})
const personValues = record({
  city: fc.oneof(from(words), from(longTexts)),
  score: from(numbers),
  joined: from(moments),
  born: from(dates),
  vip: fc.boolean(),
  tags: many(from([...words, ...longTexts])),
  counts: many(from(numbers)),
  referrer: from(people),
  friends: many(from(people)),
  bought: many(from(orders)),
  moments: many(from(moments)),
  raw: json,
  any: json,
  'dotted.key "\' $1': from(words),
})
/** Numbers of which a double has the sum and the average of a few exactly. */
export const exactNumbers = [0, 1, 2, 2.5, -1, -2.25, 4.5]
const orderValues = record({ total: from(numbers), exact: from(exactNumbers), buyer: from(people), any: json })
const profile = record({
  first_name: from(words.filter(word => word !== '')),
  email: from(['ada@example.org', 'Ada@example.org', 'bob@example.com']),
  date_of_birth: from(['1990-01-01', '2000-02-29']),
  push_notification_consent: fc.boolean(),
  email_consent: fc.boolean(),
})

const sample = <T>(values: fc.Arbitrary<T>, count: number, seed: number) => fc.sample(values, { numRuns: count, seed })

/** Stores 45 people and 10 orders with every kind of value, some of them before their keys are declared. */
export async function createDataset(organization: { send: Send }, seed: number): Promise<void> {
  const { send } = organization
  const ok = (...request: Parameters<Send>) => expectSuccess(send(...request))
  const surveys = { key: 'surveys', channels: [{ channel: 'email' as const }] }
  const mentor = { key: 'mentor', owner: 'people', type: 'person', cardinality: 'many' } as const
  await declare(send, surveys, 'visits', mentor)
  for (const [index, values] of sample(earlyValues, 15, seed).entries())
    await ok('POST', '/v1/people', {
      external_id: `early${index}`,
      attribute_values: { ...values, mentor: index % 3 ? ['p1', 'p2'] : [] },
    })
  await ok('PATCH', '/v1/schema/attributes/1', { state: 'archived' })
  const indexedOfPeople = { owner: 'people', indexed: true }
  await declare(
    send,
    'city',
    'score',
    { ...indexedOfPeople, key: 'joined', type: 'datetime' },
    { ...indexedOfPeople, key: 'born', type: 'date' },
    { ...indexedOfPeople, key: 'vip', type: 'boolean' },
    { ...indexedOfPeople, key: 'tags', type: 'text', cardinality: 'many' },
    { ...indexedOfPeople, key: 'moments', type: 'datetime', cardinality: 'many' },
    { key: 'raw', owner: 'people', type: 'json' },
    { key: 'counts', owner: 'people', type: 'number', cardinality: 'many' },
    'referrer',
    { key: 'mixed', owner: 'people', type: 'person' },
    'friends',
    'bought',
    { key: 'total', owner: 'orders', type: 'number', indexed: true },
    { key: 'exact', owner: 'orders', type: 'number' },
    'buyer',
  )
  const bodies = sample(fc.record({ profile, values: personValues }), 30, seed)
  for (const [index, { profile, values }] of bodies.entries())
    await ok('POST', '/v1/people', {
      ...profile,
      external_id: index < 24 ? `p${index}` : null,
      attribute_values: values,
    })
  for (const [index, values] of sample(orderValues, 10, seed).entries())
    await ok('POST', '/v1/stacks/orders', { external_id: `o${index}`, attribute_values: values })
  // Some links now point to a person without external_id, and some to a deleted person.
  await ok('PATCH', '/v1/people/p3', { external_id: null })
  await ok('DELETE', '/v1/people/p4')
  await ok('PATCH', '/v1/people/early1', { attribute_values: { mixed: 'p5', mentor: 'plain' } })
}

/** Reads all entities of an organization, as reads return them. */
export async function readDataset({ db, sql }: Service, organization_id: number): Promise<Dataset> {
  const context = contextOf(db, organization_id)
  const definitions = await currentDefinitions(context)
  const entities = new Map<string, StoredEntity>()
  for (const stack_id of [0, ...definitions.stacks.map(({ id }) => id)]) {
    const selectIds = 'select id from entities where organization_id = $1 and stack_id = $2 order by id'
    const ids = (await sql<{ id: string }>(selectIds, [organization_id, stack_id])).map(({ id }) => id)
    const found = await readSerialized(context, stack_id, { by: 'id', identifiers: ids })
    const textById = new Map(found.map(({ identifier, json }) => [identifier, json!]))
    for (const id of ids) {
      entities.set(id, { stack_id, id, json: JSON.parse(textById.get(id)!), links: await linksOf(id) })
    }
  }
  const refusals = await sql<Question & { address: string }>(
    'select channel, consent_type_id, address from address_answers where organization_id = $1 and not state',
    [organization_id],
  )
  return { definitions, entities, refusals: new Set(refusals.map(each => refusalKey(each, each.address))) }

  async function linksOf(id: string): Promise<StoredEntity['links']> {
    // The join leaves out links whose target is deleted.
    const selectLinks = `select l.attribute_id, json_agg(l.target_id order by l.position) as targets
      from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
      where l.organization_id = $1 and l.source_id = $2 group by l.attribute_id`
    const links = await sql<{ attribute_id: number; targets: string[] }>(selectLinks, [organization_id, id])
    return new Map(links.map(({ attribute_id, targets }) => [attribute_id, targets]))
  }
}
