import fc from 'fast-check'
import { matchKinds } from '../../src/entities/write-request.ts'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { noRules } from '../../src/values/attribute-rules.ts'
import { orderFilters, personFilters } from '../support/filter-generators.ts'
import type { Operation } from './operations.ts'
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

/** Changes of single links. No entity has a name of both lists. */
const numbered = (min: number) => fc.array(fc.integer({ min, max: min + 24 }), { maxLength: 3 })
const linkEdit = fc.oneof(
  fc.array(target, { maxLength: 3 }).map($add => ({ $add })),
  fc.array(target, { maxLength: 3 }).map($remove => ({ $remove })),
  fc.tuple(numbered(0), numbered(25)).map(([$add, $remove]) => ({ $add, $remove })),
)

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
  orders: { total: numbers, exact: numbers, buyer: oneTarget },
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

/** The attribute values of a write that merges, which may change single links of the lists. */
function withLinkEdits(values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(values, fc.record({ friends: linkEdit, bought: linkEdit }), fc.boolean())
    .map(([given, edits, isEdit]) => {
      if (!isEdit || typeof given !== 'object' || given === null) return given
      return { ...given, ...pick(edits, Object.keys(given)) }
    })
}

const pick = (values: Record<string, unknown>, keys: string[]) =>
  Object.fromEntries(keys.filter(key => Object.hasOwn(values, key)).map(key => [key, values[key]]))

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
  default_country: fc.constantFrom(undefined, null, 'IT', 'US'),
  headers: fc.constantFrom(undefined, {}, { Authorization: 'Bearer x' }, { 'X-Shop': 'a', 'x-key': 'b c' }),
  stacks: fc.constantFrom(null, ['orders'], ['visits', 'orders']),
  keys: fc.constantFrom(null, ['email'], ['state', 'attribute_values.city']),
  channels,
  key: padded(definitionKey),
  mandatory: fc.constant(false),
  target: fc.constantFrom('people', 'orders', 'visits'),
  owner: fc.constantFrom('people', 'orders', 'visits'),
  owners: fc.option(fc.shuffledSubarray(['people', 'orders', 'visits'], { minLength: 1 }), { nil: undefined }),
  attribute_key: fc.constantFrom(undefined, undefined, undefined, 'referrer', 'bought', 'buyer'),
  target_stack: fc.constant(null),
  // The consent type 1 has both channels and is never changed.
  consent_type_id: fc.constant(1),
  external_ids: fc.array(padded(external_id), { minLength: 1, maxLength: 4 }),
  at: fc.constantFrom(...dateTimes),
  // Only an event stack may have one.
  retention_days: fc.constant(null),
  // The names of a label must be declared, and a read of the past has none.
  label: fc.constant(null),
  summary: fc.constant(null),
  erased_with: fc.constant(null),
  labels: fc.constantFrom(undefined, false),
  by: fc.constantFrom(undefined, ['email'], ['name', 'email']),
  cursor: fc.constantFrom(undefined, Buffer.from('["email","b"]').toString('base64url')),
  from: fc.constantFrom('2026-01-02T03:04:05Z', '2026-02-28T23:59:59.999+23:59'),
  to: fc.constantFrom('2026-03-01T00:00:00Z', '2126-03-01T00:00:00-01:00'),
  interval: fc.constantFrom('week', 'month'),
  privacy_url: fc.constantFrom(null, 'https://notice.invalid/privacy'),
  type: fc.constantFrom('text', 'number', 'boolean', 'date', 'datetime', 'person'),
  // A required attribute would refuse the other creates.
  required: fc.constant(false),
  // No entity carries a generated key, so a new attribute can be unique. A patch would need a ready index.
  unique: fc.boolean(),
  enum: fc.constantFrom(null, null, ['a', 'b'], [1, 2.5], [true]),
  pattern: fc.constantFrom(null, null, '^a*$', '(?i)é', '(', '(?=a)', '(a{99}){99}'),
  minimum: fc.constantFrom(null, null, 0, -1.5, '2020-02-29', '0001-01-01T00:00:00+23:59'),
  maximum: fc.constantFrom(null, null, 0, 2.5, '2020-02-29', '9999-12-31T23:59:59Z'),
}

/** An event of an address, or of a person, who may not exist. */
const deliveryEvent = fc
  .tuple(
    fc.constantFrom(
      { address: 'ada@example.org' },
      { address: 'x' },
      { address: '+39 333 1234567' },
      { external_id: 'p1' },
    ),
    fc.constantFrom('hard_bounce', 'soft_bounce', 'complaint', 'delivered', 'unsubscribe'),
    fc.constantFrom('email', 'sms'),
    fc.constantFrom({}, { at: '2020-02-29T13:00:00.123456789+01:00' }, { provider: 'ses', reference: 'm-1' }),
  )
  .map(([whose, type, channel, more]) => ({ ...whose, type, channel, ...more }))

/** Returns the generators for the body fields of an operation on people, or on the records of a stack. */
export function fieldGenerators(
  { template, method }: Pick<Operation, 'template' | 'method'>,
  stack_key: string,
  document: OpenApiDocument,
): FieldGenerators {
  const isPeople = template.startsWith('/v1/people')
  const filtersPeople = isPeople || template.startsWith('/v1/segments')
  const model = isPeople ? personAttributes : (recordAttributes[stack_key] ?? {})
  const generators: FieldGenerators = {
    ...shared,
    consents,
    attribute_values:
      method === 'PATCH' || template.endsWith('/upsert')
        ? withLinkEdits(attributeValues(model))
        : attributeValues(model),
    filter: filtersPeople ? personFilters({ levels: 2, hops: 1 }) : plainFilters(stack_key),
  }
  // Most erasures are dry runs, so that most addresses go on to name a person.
  if (template.endsWith('/erase')) generators.dry_run = fc.constantFrom(true, true, true, false)
  if (template.endsWith('/bulk')) generators.dry_run = fc.constant(true)
  // Almost no text is the name of a field.
  if (/\/merge$/.test(template))
    generators.keep = fc.constantFrom(
      undefined,
      {},
      { first_name: 'other' },
      { mobile_number: 'survivor', email: 'other' },
    )
  // Links need the whole payload, and are of this moment.
  if (/^\/v1\/webhooks|\/contactable$/.test(template)) generators.links = fc.constant(false)
  // Almost no text is the key of a role.
  if (/^\/v1\/(clients|tokens|accounts)/.test(template)) generators.role = fc.constantFrom(undefined, 'reader')
  if (template.startsWith('/v1/roles'))
    Object.assign(generators, {
      fields: fc.constantFrom(null, { people: { read: ['first_name'] } }),
      state: fc.constant('active'),
    })
  if (template === '/v1/deliverability') generators.events = fc.array(deliveryEvent, { minLength: 1, maxLength: 4 })
  if (template.startsWith('/v1/retention-rules')) generators.segment = fc.constantFrom('in_rome', 'in_rome', 'unknown')
  if (template.endsWith('/upsert')) generators.match = fc.shuffledSubarray([...matchKinds], { minLength: 1 })
  if (/\/(un)?merge$/.test(template))
    Object.assign(generators, {
      from: padded(external_id),
      from_id: fc.constant(undefined),
      dry_run: fc.constant(true),
    })
  if (template.endsWith('/aggregate')) Object.assign(generators, aggregates(isPeople, stack_key))
  if (template.endsWith('/declare'))
    generators.type = fc.constantFrom('text', 'number', 'boolean', 'date', 'datetime', 'json')
  if (/\/attributes(\/({id}|batch))?$/.test(template)) {
    // Most rules fit only some types, so random ones would refuse nearly every change.
    const { required: _, ...rules } = noRules
    for (const [rule, none] of Object.entries({ ...rules, searchable: false }))
      generators[rule] = fc.constantFrom(undefined, none)
  }
  // The name of a client or of a token has no control characters, and that of a token no client has.
  if (template === '/v1/clients') generators.name = padded(fc.constantFrom('Shop', 'é'.repeat(200), '<b>'))
  if (template === '/v1/tokens') generators.name = padded(fc.constantFrom('Report', 'ü'.repeat(200), '<i>'))
  if (template === '/v1/accounts') generators.name = padded(fc.uuid())
  if (template.startsWith('/v1/accounts')) generators.role = fc.constant(null)
  if (template.endsWith('/consent-links')) generators.consent_type_id = fc.constant(1)
  if (/\/(list|filter|related)$/.test(template)) {
    generators.fields = fieldsOf(template, isPeople, Object.keys(model))
    generators.include = includeOf(template, isPeople, stack_key)
    generators.labels = fc.boolean()
  }
  if (/\/(list|filter)$/.test(template)) generators.sort = fc.option(sortOf(isPeople), { freq: 3, nil: undefined })
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

/** Fields by what they can be used for. */
const aggregated = {
  people: {
    groups: [
      'state',
      'id',
      'language',
      'email_consent',
      'created_at',
      ...['city', 'score', 'vip', 'joined', 'referrer', 'free'].map(of),
      ...['referrer.email', 'referrer.state', 'mixed.id', `referrer.${of('city')}`].map(of),
    ],
    ofTargets: [
      ...['friends.external_id', `friends.${of('city')}`, 'bought.record_id', `bought.${of('buyer')}`].map(of),
    ],
    times: ['created_at', 'updated_at', of('joined'), ...['referrer.created_at', `referrer.${of('joined')}`].map(of)],
    dates: ['date_of_birth', of('born'), of('referrer.date_of_birth')],
    numbers: [of('score'), of(`referrer.${of('score')}`)],
    ordered: [
      'first_name',
      'external_id',
      'updated_at',
      'date_of_birth',
      ...['city', 'score', 'joined', 'born'].map(of),
      of('referrer.first_name'),
    ],
  },
  orders: {
    groups: ['state', 'external_id', ...['total', 'buyer', 'free', 'buyer.language', `buyer.${of('free')}`].map(of)],
    ofTargets: [],
    times: ['created_at', of(`buyer.${of('joined')}`)],
    dates: [],
    numbers: [of('total')],
    ordered: ['created_at', of('total')],
  },
  visits: {
    groups: ['record_id', of('page')],
    ofTargets: [],
    times: ['updated_at'],
    dates: [],
    numbers: [],
    ordered: [of('page')],
  },
}
function of(key: string): string {
  return `attribute_values.${key}`
}

function aggregates(isPeople: boolean, stack_key: string): FieldGenerators {
  const { groups, ofTargets, times, dates, numbers, ordered } =
    aggregated[isPeople ? 'people' : (stack_key as 'orders' | 'visits')]
  const by = fc.constantFrom('day', 'week', 'month', 'quarter', 'year')
  const time_zone = fc.constantFrom(undefined, 'UTC', 'Europe/Berlin', 'America/St_Johns')
  const spans = [
    fc
      .tuple(fc.constantFrom(...times), by, time_zone)
      .map(([field, by, time_zone]) => (time_zone ? { field, by, time_zone } : { field, by })),
    ...(dates.length > 0 ? [fc.tuple(fc.constantFrom(...dates), by).map(([field, by]) => ({ field, by }))] : []),
  ]
  const measures = [
    fc.constant({ op: 'count' }),
    fc
      .tuple(fc.constantFrom('count', 'count_distinct'), fc.constantFrom(...groups))
      .map(([op, field]) => ({ op, field })),
    fc.tuple(fc.constantFrom('min', 'max'), fc.constantFrom(...ordered)).map(([op, field]) => ({ op, field })),
    ...numbers.flatMap(field => [
      fc.constantFrom('sum', 'avg', 'median').map(op => ({ op, field })),
      fc.constantFrom(0, 0.1, 0.95, 1).map(p => ({ op: 'percentile', field, p })),
    ]),
  ]
  return {
    // Groups use one relationship with many targets.
    group_by: fc
      .tuple(
        fc.oneof(fc.constantFrom(...groups, ...ofTargets), ...spans),
        fc.oneof(fc.constantFrom(...groups), ...spans),
        fc.nat(2),
      )
      .map(([first, second, length]) => [first, second].slice(0, length)),
    measures: fc.array(fc.oneof(...measures), { minLength: 1, maxLength: 4 }),
    // Their positions depend on the groups and measures: see `withSelection`.
    having: fc.constant(undefined),
    sort: fc.constant(undefined),
  }
}

type AggregateParts = { group_by?: unknown[]; measures?: { op: string }[] }

/** Adds tests and an order of groups to the body of an aggregate. Their positions are of measures and groups that the body has. */
export function withSelection<Body extends AggregateParts>(body: Body): fc.Arbitrary<Body> {
  const { group_by = [], measures = [{ op: 'count' }] } = body
  const places = [...measures.map((_, measure) => ({ measure })), ...group_by.map((_, group) => ({ group }))]
  const direction = fc.constantFrom({}, { direction: 'asc' }, { direction: 'desc' })
  const order = fc.tuple(fc.constantFrom(...places), direction).map(parts => Object.assign({}, ...parts))
  const hasValue = fc.oneof(
    fc.record({ $exists: fc.boolean() }),
    fc.constantFrom('$eq', '$neq').map(key => ({ [key]: null })),
  )
  const ofNumber = fc.oneof(
    fc.tuple(fc.constantFrom('$eq', '$neq', '$lt', '$lte', '$gt', '$gte'), numbers),
    fc.tuple(fc.constantFrom('$in', '$nin'), arrayOf(numbers)),
  )
  // The operands of a minimum or maximum depend on its field.
  const test = ({ op }: { op: string }, measure: number) =>
    fc
      .oneof(hasValue, op === 'min' || op === 'max' ? hasValue : ofNumber.map(pair => Object.fromEntries([pair])))
      .map(tests => ({ measure, ...tests }))
  const selection = {
    having: fc.array(fc.oneof(...measures.map(test)), { minLength: 1, maxLength: 3 }),
    sort: fc.array(order, { minLength: 1, maxLength: 3 }),
  }
  return fc.record(selection, { requiredKeys: [], noNullPrototype: true }).map(parts => ({ ...body, ...parts }))
}

/** Names of fields. Those of related are of either kind of target. */
function fieldsOf(template: string, isPeople: boolean, keys: string[]): fc.Arbitrary<unknown> {
  const own = isPeople ? ['id', 'email', 'email_consent', 'consents'] : ['record_id', 'stack_key']
  const names = ['external_id', 'attribute_values', 'state', 'version', 'created_at', 'updated_at']
  const all = [...(template.endsWith('/related') ? [] : own), ...names, ...keys.map(key => `attribute_values.${key}`)]
  return fc.option(fc.uniqueArray(fc.constantFrom(...all), { minLength: 1, maxLength: 5 }), { nil: undefined })
}

/** Relationships that the test tenant declares. */
function includeOf(template: string, isPeople: boolean, stack_key: string): fc.Arbitrary<unknown> {
  const keys = isPeople ? ['referrer', 'mixed', 'friends', 'bought'] : stack_key === 'orders' ? ['buyer'] : []
  if (template.endsWith('/related') || keys.length === 0) return fc.constant(undefined)
  return fc.option(fc.uniqueArray(fc.constantFrom(...keys), { minLength: 1 }), { nil: undefined })
}
const sortOf = (isPeople: boolean) =>
  isPeople ? fc.oneof({ weight: 3, arbitrary: fieldSort(isPeople) }, measuredSort) : fieldSort(isPeople)
const measuredSort = fc
  .constantFrom(
    { owner: 'orders', key: 'buyer', number: 'exact', filters: orderFilters({ levels: 1, hops: 1 }) },
    { owner: 'people', key: 'referrer', number: 'score', filters: personFilters({ levels: 1, hops: 1 }) },
  )
  .chain(({ owner, key, number, filters }) =>
    fc.record(
      {
        field: fc.constant(`incoming.${owner}.${key}`),
        measure: fc.constantFrom(
          { op: 'count' },
          ...['sum', 'avg', 'min', 'max'].map(op => ({ op, field: `attribute_values.${number}` })),
          { op: 'max', field: 'created_at' },
        ),
        where: filters,
        direction: fc.constantFrom('asc', 'desc'),
      },
      { requiredKeys: ['field', 'measure'], noNullPrototype: true },
    ),
  )
const fieldSort = (isPeople: boolean) =>
  fc.record(
    {
      field: fc.constantFrom(
        ...['external_id', 'created_at', 'updated_at'],
        ...(isPeople ? ['last_name', 'email', 'sms_consent', 'attribute_values.city'] : []),
      ),
      direction: fc.constantFrom('asc', 'desc'),
    },
    { requiredKeys: ['field'], noNullPrototype: true },
  )

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
  const attribute_values = withLinkEdits(generators.attribute_values!)
  const merging = valuesOf(schema, document, { ...generators, attribute_values }) as typeof bodies
  const named = (op: string, body: fc.Arbitrary<object>) =>
    fc.tuple(addressed, body).map(([address, body]) => ({ op, ...address, body }))
  return fc.array(
    fc.oneof(
      bodies.map(body => ({ op: 'create', body })),
      named(
        'upsert',
        merging.map(({ external_id: _, ...rest }) => rest),
      ),
      named('patch', merging),
      named('put', nameless),
      addressed.map(address => ({ op: 'delete', ...address })),
    ),
    { maxLength: 5 },
  )
}
