import fc from 'fast-check'
import { matchKinds } from '../../src/entities/write-request.ts'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { orderFilters, personFilters } from '../support/filter-generators.ts'
import { external_id, freeKey, json, padded, text, trimStrings } from './texts.ts'
import { type FieldGenerators, valuesOf } from './values.ts'

const dateTimes = ['2020-02-29T12:00:00Z', '2020-02-29t13:00:00.123456789+01:00', '0001-01-01T00:00:00+23:59']
const dates = ['2020-02-29', '0001-01-01', '9999-12-31']
const numbers = fc.oneof(fc.integer(), fc.constantFrom(0.1, -2.25, 1.5e-7))
const arrayOf = <T>(values: fc.Arbitrary<T>) => fc.array(values, { maxLength: 3 })

const target: fc.Arbitrary<unknown> = fc.oneof(
  padded(external_id),
  fc.integer({ min: 0, max: 50 }),
  external_id.map(value => ({ external_id: value })),
)
const oneTarget = fc.oneof(target, fc.constantFrom(null, '', ' '), fc.constant([]), fc.tuple(target))
const targets = fc.oneof(oneTarget, fc.array(target, { maxLength: 4 }))

const personAttributes = {
  city: padded(text),
  score: numbers,
  joined: fc.constantFrom(...dateTimes),
  born: fc.constantFrom(...dates),
  vip: fc.boolean(),
  tags: arrayOf(padded(text)),
  counts: arrayOf(numbers),
  anything: json.filter(value => value !== null),
  referrer: oneTarget,
  mixed: oneTarget,
  friends: targets,
  bought: targets,
}
const recordAttributes: Record<string, Record<string, fc.Arbitrary<unknown>>> = {
  orders: { total: numbers, buyer: oneTarget },
  visits: { page: padded(text) },
}

/** Generates attribute values: declared attributes in their types or null, and any JSON under undeclared keys. */
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

const consentPairs = [
  [1, 'email'],
  [1, 'sms'],
  [2, 'email'],
] as const
/** Without `collected_at`, which may put an answer behind the one that stands. */
const evidence = fc.record(
  {
    method: fc.constantFrom('web_form', 'paper', 'import', 'other'),
    source: padded(text.filter(value => trimStrings(value) !== '')),
    ip: fc.oneof(fc.ipV4(), fc.ipV6()),
    reference: padded(fc.constantFrom('r-1', '<b>')),
  },
  { requiredKeys: [], noNullPrototype: true },
)
const consents = fc.oneof(
  fc.constantFrom(null, []),
  fc
    .tuple(fc.subarray([...consentPairs]), fc.boolean(), evidence)
    .map(([chosen, state, given]) =>
      chosen.map(([consent_type_id, channel]) => ({ consent_type_id, channel, state, ...given })),
    ),
)

const channels = fc
  .uniqueArray(fc.constantFrom('email', 'sms'), { minLength: 1, maxLength: 2 })
  .map(names => names.map((channel, index) => (index ? { channel, is_default: false } : { channel })))

/** Keys for new definitions. They differ from all generated attribute keys, so a definition never changes which values are valid. */
const definitionKey = fc.stringMatching(/^zz[a-z0-9_]{1,20}$/)

/** A URL whose host never exists, so that no request leaves the machine, nor a query for the name. */
const webhookUrl = text.map(path => `https://receiver.invalid/${encodeURIComponent([...path].slice(0, 20).join(''))}`)

const shared: FieldGenerators = {
  // A batch with emails might give a person an alias, as `withoutAlias` says.
  match: fc.constantFrom(['external_id'], ['external_id', 'mobile'], ['mobile', 'external_id']),
  url: padded(webhookUrl),
  stacks: fc.constantFrom(null, ['orders'], ['visits', 'orders']),
  keys: fc.constantFrom(null, ['email'], ['state', 'attribute_values.city']),
  channels,
  key: padded(definitionKey),
  mandatory: fc.constant(false),
  target: fc.constantFrom('people', 'orders', 'visits'),
  owner: fc.constantFrom('people', 'orders', 'visits'),
  attribute_key: fc.constantFrom(undefined, undefined, undefined, 'referrer', 'bought', 'buyer'),
  target_stack: fc.constant(null),
  // The consent type 1 has both channels and is never changed.
  consent_type_id: fc.constant(1),
  external_ids: fc.array(padded(external_id), { minLength: 1, maxLength: 4 }),
  at: fc.constantFrom(...dateTimes),
  // Only an event stack may have one.
  retention_days: fc.constant(null),
  by: fc.constantFrom(undefined, ['email'], ['name', 'email']),
  cursor: fc.constantFrom(undefined, Buffer.from('["email","b"]').toString('base64url')),
  privacy_url: fc.constantFrom(null, 'https://notice.invalid/privacy'),
  type: fc.constantFrom('text', 'number', 'boolean', 'date', 'datetime', 'person'),
}

/** Returns the generators for the body fields of an operation on people, or on the records of a stack. */
export function fieldGenerators(template: string, stack_key: string, document: OpenApiDocument): FieldGenerators {
  const isPeople = template.startsWith('/v1/people')
  const model = isPeople ? personAttributes : (recordAttributes[stack_key] ?? {})
  const generators: FieldGenerators = {
    ...shared,
    consents,
    attribute_values: attributeValues(model),
    filter: isPeople ? personFilters({ levels: 2, hops: 1 }) : plainFilters(stack_key),
  }
  // Most erasures are rehearsals, so that most addresses go on to name somebody.
  if (template.endsWith('/erase')) generators.dry_run = fc.constantFrom(true, true, true, false)
  if (template.endsWith('/upsert')) generators.match = fc.shuffledSubarray([...matchKinds], { minLength: 1 })
  if (/\/(un)?merge$/.test(template))
    Object.assign(generators, {
      from: padded(external_id),
      from_id: fc.constant(undefined),
      dry_run: fc.constant(true),
    })
  if (template.endsWith('/consent-links')) generators.consent_type_id = fc.constant(1)
  if (template.includes('/related')) {
    generators.cursor_configuration = fc.record({ size: fc.integer({ min: 1, max: 500 }) })
    generators.direction = fc.constant('both')
  }
  if (template.endsWith('/batch')) {
    generators.operations = batchOperations(document, isPeople, generators)
    // An operation has a name, which another match would make an alias.
    generators.match = fc.constantFrom(undefined, ['external_id'])
  }
  return generators
}

const plainFilters = (stack_key: string): fc.Arbitrary<unknown> =>
  stack_key === 'orders'
    ? orderFilters({ levels: 2, hops: 1 })
    : fc.tuple(freeKey, json).map(([key, operand]) => ({ [`attribute_values.${key}`]: { $eq: operand } }))

function batchOperations(document: OpenApiDocument, isPeople: boolean, generators: FieldGenerators) {
  const schema = { $ref: `#/components/schemas/${isPeople ? 'PersonBody' : 'RecordBody'}` }
  const bodies = valuesOf(schema, document, generators) as fc.Arbitrary<Record<string, unknown>>
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
