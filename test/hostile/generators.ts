import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { orderFilters, personFilters } from '../support/filter-generators.ts'
import { external_id, freeKey, json, padded, text } from './texts.ts'
import { type Knowledge, valuesOf } from './values.ts'

const moments = ['2020-02-29T12:00:00Z', '2020-02-29t13:00:00.123456789+01:00', '0001-01-01T00:00:00+23:59']
const dates = ['2020-02-29', '0001-01-01', '9999-12-31']
const numbers = fc.oneof(fc.integer(), fc.constantFrom(0.1, -2.25, 1.5e-7))
const many = <T>(values: fc.Arbitrary<T>) => fc.array(values, { maxLength: 3 })

const target: fc.Arbitrary<unknown> = fc.oneof(
  padded(external_id),
  fc.integer({ min: 0, max: 50 }),
  external_id.map(value => ({ external_id: value })),
)
const oneTarget = fc.oneof(target, fc.constantFrom(null, '', ' '), fc.constant([]), fc.tuple(target))
const targets = fc.oneof(oneTarget, fc.array(target, { maxLength: 4 }))

const ofPeople = {
  city: padded(text),
  score: numbers,
  joined: fc.constantFrom(...moments),
  born: fc.constantFrom(...dates),
  vip: fc.boolean(),
  tags: many(padded(text)),
  counts: many(numbers),
  anything: json.filter(value => value !== null),
  referrer: oneTarget,
  mixed: oneTarget,
  friends: targets,
  bought: targets,
}
const ofStacks: Record<string, Record<string, fc.Arbitrary<unknown>>> = {
  orders: { total: numbers, buyer: oneTarget },
  visits: { page: padded(text) },
}

/** Values of declared attributes in their types, null among them, beside any JSON under other keys. */
function attributeValues(model: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  const declared = fc.record(
    Object.fromEntries(Object.entries(model).map(([key, value]) => [key, fc.option(value, { freq: 8 })])),
    { requiredKeys: [], noNullPrototype: true },
  )
  const few = fc.subarray(Object.keys(model), { maxLength: Math.min(3, Object.keys(model).length) })
  const chosen = fc.tuple(declared, few).map(([values, keys]) => pick(values, keys))
  const free = fc.dictionary(freeKey, json, { maxKeys: 2, noNullPrototype: true })
  const values = fc.tuple(free, chosen).map(parts => Object.assign({}, ...parts))
  return fc.oneof({ weight: 8, arbitrary: values }, { weight: 1, arbitrary: fc.constantFrom(null, {}) })
}

const pick = (values: Record<string, unknown>, keys: string[]) =>
  Object.fromEntries(keys.filter(key => key in values).map(key => [key, values[key]]))

const pairs = [
  [1, 'email'],
  [1, 'sms'],
  [2, 'email'],
] as const
const consents = fc.oneof(
  fc.constantFrom(null, []),
  fc
    .tuple(fc.subarray([...pairs]), fc.boolean())
    .map(([chosen, state]) => chosen.map(([consent_type_id, channel]) => ({ consent_type_id, channel, state }))),
)

const channels = fc
  .uniqueArray(fc.constantFrom('email', 'sms'), { minLength: 1, maxLength: 2 })
  .map(names => names.map((channel, index) => (index ? { channel, is_default: false } : { channel })))

/** Keys of definitions that meet nobody's attributes: what is declared here must not change what values are allowed. */
const definitionKey = fc.stringMatching(/^zz[a-z0-9_]{1,20}$/)

const shared: Knowledge = {
  channels,
  key: padded(definitionKey),
  mandatory: fc.constant(false),
  target: fc.constantFrom('people', 'orders', 'visits'),
  owner: fc.constantFrom('people', 'orders', 'visits'),
  attribute_key: fc.constantFrom(undefined, undefined, undefined, 'referrer', 'bought', 'buyer'),
  target_stack: fc.constant(null),
  type: fc.constantFrom('text', 'number', 'boolean', 'date', 'datetime', 'person'),
}

/** What the bodies of an operation on people, or on records of a stack, may hold. */
export function knowledgeOf(template: string, stack_key: string, document: OpenApiDocument): Knowledge {
  const ofPeopleAlone = template.startsWith('/v1/people')
  const model = ofPeopleAlone ? ofPeople : (ofStacks[stack_key] ?? {})
  const known: Knowledge = {
    ...shared,
    consents,
    attribute_values: attributeValues(model),
    filter: ofPeopleAlone ? personFilters({ levels: 2, hops: 1 }) : plainFilters(stack_key),
  }
  if (template.includes('/related')) {
    known.cursor_configuration = fc.record({ size: fc.integer({ min: 1, max: 500 }) })
    known.direction = fc.constant('both')
  }
  if (template.endsWith('/batch')) known.operations = batchOperations(document, ofPeopleAlone, known)
  return known
}

const plainFilters = (stack_key: string): fc.Arbitrary<unknown> =>
  stack_key === 'orders'
    ? orderFilters({ levels: 2, hops: 1 })
    : fc.tuple(freeKey, json).map(([key, operand]) => ({ [`attribute_values.${key}`]: { $eq: operand } }))

function batchOperations(document: OpenApiDocument, ofPeopleAlone: boolean, known: Knowledge) {
  const schema = { $ref: `#/components/schemas/${ofPeopleAlone ? 'PersonBody' : 'RecordBody'}` }
  const bodies = valuesOf(schema, document, known) as fc.Arbitrary<Record<string, unknown>>
  const nameless = bodies.map(({ external_id: _, ...rest }) => rest)
  const addressed = fc.record(
    { external_id, if_match: fc.constantFrom('*', '"1"') },
    { requiredKeys: ['external_id'], noNullPrototype: true },
  )
  const named = (op: string, body: fc.Arbitrary<object>) =>
    fc.tuple(addressed, body).map(([address, body]) => ({ op, ...address, body }))
  return fc.array(
    fc.oneof(
      bodies.map(body => ({ op: 'create', body })),
      named('upsert', nameless),
      named('patch', bodies),
      named('put', nameless),
      addressed.map(address => ({ op: 'delete', ...address })),
    ),
    { maxLength: 5 },
  )
}
