import fc from 'fast-check'
import {
  dates,
  exactNumbers,
  from,
  json,
  longTexts,
  many,
  moments,
  numbers,
  people,
  texts,
  words,
} from './filter-world.ts'
import { eachFlag, eachText, kindOfText } from './profile.ts'

type Operands = {
  values: fc.Arbitrary<unknown>
  /** Bounds of ranges, if the type has an order. */
  bounds?: fc.Arbitrary<unknown>
  /** Texts to search for, if the type can be searched. */
  searches?: fc.Arbitrary<string>
}

const orderedOperands = (values: fc.Arbitrary<unknown>, searches?: fc.Arbitrary<string>): Operands => ({
  values,
  bounds: values,
  ...(searches && { searches }),
})
const someTexts = from([...words, 'o', 'x', 'α', 'Σ', '2020'])
const names = texts.filter(text => text !== '')
const recordIds = from(['0'.repeat(24), '66f0a1B2c3d4e5f60718293a', 'f'.repeat(24)])
const uuids = from(['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', 'FFFFFFFF-ffff-ffff-ffff-ffffffffffff'])

const text = orderedOperands(texts, someTexts)
const name = { ...text, values: names }
const number = orderedOperands(from(numbers))
const boolean: Operands = { values: fc.boolean() }
const date = orderedOperands(from(dates), from(['', '0', '2', '20', '29', '2020-02-29']))
const moment = orderedOperands(from(moments))
const anything = { values: json, bounds: fc.oneof(texts, from(numbers)), sought: someTexts }

const element = ({ values, ...rest }: Operands, elements: fc.Arbitrary<unknown>): Operands => ({
  ...rest,
  values: fc.oneof({ weight: 3, arbitrary: values }, { weight: 1, arbitrary: elements }),
})
const ofMany = (one: Operands) => element(one, many(one.values))
const manyNames = element(name, fc.array(names, { minLength: 1, maxLength: 3 }))

const shared: Record<string, Operands> = {
  external_id: name,
  state: { values: from(['active', 'placeholder']) },
  created_at: moment,
  updated_at: moment,
}
const profileFields: Record<string, Operands> = {
  ...eachText(field => ({ text, name, date })[kindOfText(field)]),
  ...eachFlag(() => boolean),
}
const personFields: Record<string, Operands> = {
  ...shared,
  id: orderedOperands(uuids, from(['', '0', 'A', 'ff'])),
  ...profileFields,
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
const orderFields: Record<string, Operands> = {
  ...shared,
  record_id: orderedOperands(recordIds, from(['6', 'F', '00', ''])),
}
const orderKeys: Record<string, Operands> = { total: number, buyer: name, any: anything }

const rangeTests = (operand: fc.Arbitrary<unknown>) =>
  fc.record({ operator: from(['$lt', '$lte', '$gt', '$gte']), operand })
const equalityTests = (operand: fc.Arbitrary<unknown>) => fc.record({ operator: from(['$eq', '$neq']), operand })
const listTests = (operand: fc.Arbitrary<unknown>) =>
  fc.record({ operator: from(['$in', '$nin']), operand: fc.array(operand, { maxLength: 4 }) })
const searchTests = (operand: fc.Arbitrary<string>) =>
  fc.record({ operator: from(['$contains', '$starts_with', '$ends_with']), operand })
const existenceTests = fc.record({ operator: fc.constant('$exists'), operand: fc.boolean() })

const isPlainValue = (operand: unknown) => typeof operand !== 'object' || operand === null || Array.isArray(operand)

/** Generates one or two operators on a field, or a bare value. */
function testsOf({ values, bounds, searches: sought }: Operands): fc.Arbitrary<unknown> {
  const nullable = fc.option(values, { freq: 6 })
  const one = fc.oneof(
    equalityTests(nullable),
    listTests(nullable),
    existenceTests,
    ...(bounds ? [rangeTests(bounds)] : []),
    ...(sought ? [searchTests(sought)] : []),
  )
  const operators = fc
    .array(one, { minLength: 1, maxLength: 2 })
    .map(made => Object.fromEntries(made.map(({ operator, operand }) => [operator, operand])))
  return fc.oneof({ weight: 3, arbitrary: operators }, { weight: 1, arbitrary: nullable.filter(isPlainValue) })
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
  .chain(condition => fc.option(fc.boolean()).map(state => ({ ...condition, ...(state !== null && { state }) })))
  .map(condition => ({ consents: { $some: condition } }))
const contactable = fc
  .constantFrom({ consent_type_id: 1, channel: 'sms' }, { consent_type_id: 2, channel: 'email' })
  .map(question => ({ contactable: question }))

/** Generates operands of every type on every field of people, most of which the field can never equal. */
export const mistypedFilters: fc.Arbitrary<unknown> = fc
  .record({
    name: from([...Object.keys(personFields), ...Object.keys(personKeys).map(key => `attribute_values.${key}`)]),
    tests: testsOf({
      values: fc.oneof(json, uuids, from(['active', 'x'])),
      bounds: fc.oneof(texts, from(numbers), uuids),
      searches: fc.oneof(someTexts, from(['2020-', '02', 'ab', 'x-', '2020-02-29T', 'ff-ff'])),
    }),
  })
  .map(({ name, tests }) => ({ [name]: tests }))

const measureTests = testsOf({ values: from(exactNumbers), bounds: from(exactNumbers) })

/** Generates conditions on the entities that link here. The measures of orders are of their attribute `exact`. */
function incomingFilters(name: string, filters: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const measure = name.startsWith('orders.')
    ? fc.oneof(
        measureTests.map($count => ({ $count })),
        fc
          .tuple(from(['$sum', '$avg', '$min', '$max']), measureTests)
          .map(([op, tests]) => ({ [op]: { 'attribute_values.exact': tests } })),
      )
    : measureTests.map($count => ({ $count }))
  const measured = fc
    .tuple(measure, fc.option(filters, { nil: undefined }))
    .map(([members, $where]) => ({ ...members, ...($where !== undefined && { $where }) }))
  const quantified = fc
    .tuple(from(['$some', '$none', '$every']), filters)
    .map(([quantifier, inner]) => ({ [quantifier]: inner }))
  return fc.oneof(measured, quantified).map(members => ({ [`incoming.${name}`]: members }))
}

type Depth = { levels: number; hops: number }

const quantifiedFilters = (name: string, filters: fc.Arbitrary<unknown>) =>
  fc
    .record({ quantifier: from(['$some', '$none', '$every']), filters })
    .map(({ quantifier, filters }) => ({ [`attribute_values.${name}`]: { [quantifier]: filters } }))

function combineFilters(leaf: fc.Arbitrary<unknown>, deeper: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.array(deeper, { maxLength: 3 }).map($and => ({ $and })) },
    { weight: 2, arbitrary: fc.array(deeper, { maxLength: 3 }).map($or => ({ $or })) },
    { weight: 2, arbitrary: deeper.map($not => ({ $not })) },
  )
}

/** Generates valid filters on people. */
export function personFilters({ levels, hops }: Depth = { levels: 4, hops: 3 }): fc.Arbitrary<unknown> {
  const plain = fc.oneof(
    { weight: 4, arbitrary: fieldsOf(personFields) },
    { weight: 6, arbitrary: fieldsOf(personKeys, 'attribute_values.') },
    { weight: 1, arbitrary: consents },
    { weight: 1, arbitrary: contactable },
  )
  if (levels === 1) return plain
  const targetDepth = { levels: levels - 1, hops: hops - 1 }
  const throughLinks =
    hops === 0
      ? plain
      : fc.oneof(
          quantifiedFilters('referrer', personFilters(targetDepth)),
          quantifiedFilters('friends', personFilters(targetDepth)),
          quantifiedFilters('mixed', personFilters(targetDepth)),
          quantifiedFilters('bought', orderFilters(targetDepth)),
          incomingFilters('orders.buyer', orderFilters(targetDepth)),
          incomingFilters('people.referrer', personFilters(targetDepth)),
          incomingFilters('people.friends', personFilters(targetDepth)),
        )
  const leaf = fc.oneof({ weight: 3, arbitrary: plain }, { weight: 2, arbitrary: throughLinks })
  return combineFilters(leaf, personFilters({ levels: levels - 1, hops }))
}

/** Generates valid filters on orders. */
export function orderFilters({ levels, hops }: Depth = { levels: 4, hops: 3 }): fc.Arbitrary<unknown> {
  const plain = fc.oneof(fieldsOf(orderFields), fieldsOf(orderKeys, 'attribute_values.'))
  if (levels === 1) return plain
  const targetDepth = { levels: levels - 1, hops: hops - 1 }
  const across =
    hops === 0
      ? plain
      : fc.oneof(
          quantifiedFilters('buyer', personFilters(targetDepth)),
          incomingFilters('people.bought', personFilters(targetDepth)),
        )
  return combineFilters(fc.oneof(plain, across), orderFilters({ levels: levels - 1, hops }))
}

/** Generates a condition on one key with operands of its type, some of which are stored. */
export const typedFilters: fc.Arbitrary<unknown> = fc.oneof(
  ...[
    { key: 'city', operand: from([...words, ...longTexts]) },
    { key: 'tags', operand: from([...words, ...longTexts]) },
    { key: 'score', operand: from(numbers) },
    { key: 'joined', operand: from(moments) },
    { key: 'born', operand: from(dates) },
    { key: 'vip', operand: fc.boolean() },
    { key: 'referrer', operand: from(people) },
    { key: 'mixed', operand: from([...people, ...words.filter(word => word !== '')]) },
  ].map(({ key, operand }) =>
    fc
      .array(
        key === 'vip'
          ? equalityTests(operand)
          : fc.oneof(equalityTests(operand), rangeTests(operand), listTests(operand)),
        {
          minLength: 1,
          maxLength: 2,
        },
      )
      .map(made => ({
        [`attribute_values.${key}`]: Object.fromEntries(made.map(({ operator, operand }) => [operator, operand])),
      })),
  ),
)
