import fc from 'fast-check'
import { dates, from, json, long, many, moments, numbers, people, texts, words } from './filter-world.ts'

type Operands = {
  values: fc.Arbitrary<unknown>
  /** Bounds of ranges, where there is an order. */
  bounds?: fc.Arbitrary<unknown>
  /** Texts to search for, where texts are searched. */
  sought?: fc.Arbitrary<string>
}

const ordered = (values: fc.Arbitrary<unknown>, sought?: fc.Arbitrary<string>): Operands => ({
  values,
  bounds: values,
  ...(sought && { sought }),
})
const someTexts = from([...words, 'o', 'x', 'α', 'Σ', '2020'])
const names = texts.filter(text => text !== '')
const recordIds = from(['0'.repeat(24), '66f0a1B2c3d4e5f60718293a', 'f'.repeat(24)])
const uuids = from(['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', 'FFFFFFFF-ffff-ffff-ffff-ffffffffffff'])

const text = ordered(texts, someTexts)
const name = { ...text, values: names }
const number = ordered(from(numbers))
const boolean: Operands = { values: fc.boolean() }
const date = ordered(from(dates), from(['', '0', '2', '20', '29', '2020-02-29']))
const moment = ordered(from(moments))
const anything = { values: json, bounds: fc.oneof(texts, from(numbers)), sought: someTexts }

const element = ({ values, ...rest }: Operands, elements: fc.Arbitrary<unknown>): Operands => ({
  ...rest,
  values: fc.oneof({ weight: 3, arbitrary: values }, { weight: 1, arbitrary: elements }),
})
const ofMany = (one: Operands) => element(one, many(one.values))
const manyNames = element(name, fc.array(fc.option(names, { freq: 3 }), { minLength: 1, maxLength: 3 }))

const shared: Record<string, Operands> = {
  external_id: name,
  state: { values: from(['active', 'placeholder']) },
  created_at: moment,
  updated_at: moment,
}
const personFields: Record<string, Operands> = {
  ...shared,
  id: ordered(uuids, from(['', '0', 'A', 'ff'])),
  first_name: text,
  last_name: text,
  email: name,
  language: name,
  date_of_birth: date,
  email_consent: boolean,
  sms_consent: boolean,
  push_notification_consent: boolean,
}
const personKeys: Record<string, Operands> = {
  city: text,
  score: number,
  joined: moment,
  born: date,
  vip: boolean,
  tags: ofMany(text),
  counts: ofMany(number),
  moments: ofMany(moment),
  raw: anything,
  any: anything,
  'dotted.key "\' $1': anything,
  nowhere: anything,
  __proto: anything,
  mentor: anything,
  referrer: name,
  mixed: name,
  friends: manyNames,
  bought: manyNames,
}
const orderFields: Record<string, Operands> = { ...shared, record_id: ordered(recordIds, from(['6', 'F', '00', ''])) }
const orderKeys: Record<string, Operands> = { total: number, buyer: name, any: anything }

const ranged = (operand: fc.Arbitrary<unknown>) =>
  fc.record({ operator: from(['$lt', '$lte', '$gt', '$gte']), operand })
const equal = (operand: fc.Arbitrary<unknown>) => fc.record({ operator: from(['$eq', '$neq']), operand })
const listed = (operand: fc.Arbitrary<unknown>) =>
  fc.record({ operator: from(['$in', '$nin']), operand: fc.array(operand, { maxLength: 4 }) })
const searched = (operand: fc.Arbitrary<string>) =>
  fc.record({ operator: from(['$contains', '$starts_with', '$ends_with']), operand })
const existing = fc.record({ operator: fc.constant('$exists'), operand: fc.boolean() })

const isBare = (operand: unknown) => typeof operand !== 'object' || operand === null || Array.isArray(operand)

/** One or two operators on a field, or a value alone. */
function testsOf({ values, bounds, sought }: Operands): fc.Arbitrary<unknown> {
  const nullable = fc.option(values, { freq: 6 })
  const one = fc.oneof(
    equal(nullable),
    listed(nullable),
    existing,
    ...(bounds ? [ranged(bounds)] : []),
    ...(sought ? [searched(sought)] : []),
  )
  const operators = fc
    .array(one, { minLength: 1, maxLength: 2 })
    .map(made => Object.fromEntries(made.map(({ operator, operand }) => [operator, operand])))
  return fc.oneof({ weight: 3, arbitrary: operators }, { weight: 1, arbitrary: nullable.filter(isBare) })
}

const fieldsOf = (fields: Record<string, Operands>, prefix = '') =>
  fc.oneof(
    ...Object.entries(fields).map(([name, operands]) => testsOf(operands).map(tests => ({ [prefix + name]: tests }))),
  )

const consents = fc
  .constantFrom(
    {},
    { channel: 'sms' },
    { consent_type_id: 1 },
    { consent_type_id: 1, channel: 'sms' },
    { consent_type_id: 2, channel: 'email' },
  )
  .chain(wanted => fc.option(fc.boolean()).map(state => ({ ...wanted, ...(state !== null && { state }) })))
  .map(wanted => ({ consents: { $some: wanted } }))

/** Operands of every sort on every field of people: what the field can equal among much that it cannot. */
export const looseFilters: fc.Arbitrary<unknown> = fc
  .record({
    name: from([...Object.keys(personFields), ...Object.keys(personKeys).map(key => `attribute_values.${key}`)]),
    tests: testsOf({
      values: fc.oneof(json, uuids, from(['active', 'x'])),
      bounds: fc.oneof(texts, from(numbers), uuids),
      sought: fc.oneof(someTexts, from(['2020-', '02', 'ab', 'x-', '2020-02-29T', 'ff-ff'])),
    }),
  })
  .map(({ name, tests }) => ({ [name]: tests }))

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

/** Filters on people that are accepted. */
export function personFilters({ levels, hops }: Depth = { levels: 4, hops: 3 }): fc.Arbitrary<unknown> {
  const plain = fc.oneof(
    { weight: 4, arbitrary: fieldsOf(personFields) },
    { weight: 6, arbitrary: fieldsOf(personKeys, 'attribute_values.') },
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

/** Filters on orders that are accepted. */
export function orderFilters({ levels, hops }: Depth = { levels: 4, hops: 3 }): fc.Arbitrary<unknown> {
  const plain = fc.oneof(fieldsOf(orderFields), fieldsOf(orderKeys, 'attribute_values.'))
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
    { key: 'joined', operand: from(moments) },
    { key: 'born', operand: from(dates) },
    { key: 'vip', operand: fc.boolean() },
    { key: 'referrer', operand: from(people) },
    { key: 'mixed', operand: from([...people, ...words.filter(word => word !== '')]) },
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
