import { type Format, formats, isDate, isDateTime } from '../formats.ts'
import { type Attribute, type Definitions, isRelationship } from '../organizations/definitions.ts'
import { coerceText } from '../scalars.ts'
import type { Field, Search } from './grammar.ts'

/** What is wrong with an operand, and where below it. */
export type OperandFault = { path: (string | number)[]; message: string }

/**
 * What a field can be compared with. Each check answers what is wrong, or undefined. None of them is given `null`: it stands
 * for a missing value.
 */
export type OperandType = {
  /** Checks a value to be equal to: wrong is what the field can never equal. */
  equality: (value: unknown) => OperandFault | undefined
  /** Checks a bound of a range. */
  bound: (value: unknown) => string | undefined
  /** Checks a text to search for. */
  search: (operator: Search, text: string) => string | undefined
  /** The type that a text of a query string is read as, where it is not text. */
  coerced?: 'number' | 'boolean' | undefined
}

type Scalar = Omit<OperandType, 'equality'> & { wrong: (value: unknown) => string | undefined }

const isString = (value: unknown): value is string => typeof value === 'string'
const accept = () => undefined
const unordered = (noun: string) => () => `compares what has an order, and this is ${noun}`
const unsearchable = (noun: string) => () => `searches texts, and this is ${noun}`

function notString(value: unknown): string | undefined {
  if (isString(value)) return undefined
  const isScalar = typeof value === 'number' || typeof value === 'boolean'
  return isScalar ? `must be a string: write "${value}"` : 'must be a string'
}

const notA = (type: 'number' | 'boolean') => (value: unknown) => {
  const meant = isString(value) ? coerceText(value, type) : value
  if (typeof value === type) return undefined
  return typeof meant === type ? `must be a ${type}: write ${meant}, without quotes` : `must be a ${type}`
}

const without =
  ({ holds, message }: Format) =>
  (value: unknown) =>
    isString(value) && holds(value) ? undefined : message

const notDate = (noun: string) => (value: unknown) =>
  isString(value) && isDateTime(value)
    ? `is a date and time; the ${noun} is a date: write ${value.slice(0, 10)}`
    : without(formats.date!)(value)

const notDateTime = (noun: string) => (value: unknown) =>
  isString(value) && isDate(value)
    ? `${value} is a date; the ${noun} is a date and time: write ${value}T00:00:00Z`
    : without(formats['date-time']!)(value)

/** Checks whether a text can be part of values that all look like `pattern`, where a 9 stands for each of `digits`. */
function notPartOf(pattern: string, digits: RegExp, message: string): Scalar['search'] {
  return (operator, text) => {
    const sought = text.replace(digits, '9')
    const isPart = {
      $contains: pattern.includes(sought),
      $starts_with: pattern.startsWith(sought),
      $ends_with: pattern.endsWith(sought),
    }
    return isPart[operator] ? undefined : message
  }
}

const searchDate = notPartOf('9999-99-99', /\d/g, 'is part of no date, YYYY-MM-DD')
const searchUuid = notPartOf('99999999-9999-9999-9999-999999999999', /[\da-f]/gi, 'is part of no UUID')
const searchRecordId = notPartOf('9'.repeat(24), /[\da-f]/gi, 'is part of no record_id')

const text: Scalar = { wrong: notString, bound: notString, search: accept }
/** A text that no write lets be empty. */
const name: Scalar = {
  ...text,
  wrong: value => (value === '' ? 'is never empty: write null for what is missing' : notString(value)),
}
const number: Scalar = {
  wrong: notA('number'),
  bound: notA('number'),
  search: unsearchable('a number'),
  coerced: 'number',
}
const boolean: Scalar = {
  wrong: notA('boolean'),
  bound: unordered('a boolean'),
  search: unsearchable('a boolean'),
  coerced: 'boolean',
}
const ordered = (wrong: Scalar['wrong'], search: Scalar['search']): Scalar => ({ wrong, bound: wrong, search })
const json: Scalar = {
  wrong: accept,
  bound: value => (isString(value) || typeof value === 'number' ? undefined : 'must be a string or a number'),
  search: accept,
}
const state: Scalar = {
  wrong: value => (value === 'active' || value === 'placeholder' ? undefined : 'must be active or placeholder'),
  bound: unordered('a state'),
  search: unsearchable('a state'),
}

/** Of attributes. A relationship is compared by the external identifier of its target. */
const ofAttributes: Record<Attribute['type'], Scalar> = {
  text,
  number,
  boolean,
  date: ordered(notDate('attribute'), searchDate),
  datetime: ordered(notDateTime('attribute'), unsearchable('a date and time')),
  json,
  person: name,
  stack: name,
}

/** Of the fields that every entity of a kind has. */
const ofFields = {
  text,
  name,
  boolean,
  date: ordered(notDate('field'), searchDate),
  time: ordered(notDateTime('field'), unsearchable('a date and time')),
  id: ordered(without(formats.uuid!), searchUuid),
  record_id: ordered(without(formats['object-id']!), searchRecordId),
  state,
}

/** What a field of the entities of a stack can be compared with. An archived attribute is as undeclared: it takes any value. */
export function operandTypeOf(field: Field, { declared }: Definitions, stack_id: number): OperandType {
  if (field.kind !== 'attribute') return one(ofFields[scalarOf(field)])
  const attribute = declared.get(stack_id)?.get(field.key)
  if (!attribute) return one(json)
  const scalar = ofAttributes[attribute.type]
  // An element of a json attribute may be an array itself.
  const isMany = attribute.cardinality === 'many' && scalar !== json
  return isMany ? many(scalar, isRelationship(attribute)) : one(scalar)
}

function scalarOf(field: Exclude<Field, { kind: 'attribute' }>): keyof typeof ofFields {
  if (field.kind !== 'text') return field.kind
  if (field.column === 'date_of_birth') return 'date'
  return field.column === 'external_id' || field.column === 'email' || field.column === 'language' ? 'name' : 'text'
}

const one = ({ wrong, ...rest }: Scalar): OperandType => ({ ...rest, equality: value => faultOf(wrong(value)) })

/** Equal to the whole array, or to an element of it. */
function many({ wrong, ...rest }: Scalar, isRelationship: boolean): OperandType {
  // A target without an external identifier is shown as null, and without a target there is no array.
  const notElement = (value: unknown) => {
    if (value === null) return isRelationship ? undefined : 'must not be null'
    return wrong(value)
  }
  const equality = (value: unknown) => {
    if (!Array.isArray(value)) return faultOf(wrong(value))
    if (isRelationship && value.length === 0) return faultOf('is never empty: write null for what is missing')
    const index = value.findIndex(element => notElement(element) !== undefined)
    return index === -1 ? undefined : faultOf(notElement(value[index]), index)
  }
  return { ...rest, equality }
}

const faultOf = (message: string | undefined, ...path: number[]): OperandFault | undefined =>
  message === undefined ? undefined : { path, message }
