import { consentDefaults, type Question } from '../../consents/answers.ts'
import { methods } from '../../consents/schema.ts'
import { type Attribute, type ConsentType, type Definitions, isRelationship } from '../../organizations/definitions.ts'
import { type Channel, channels } from '../../values/channels.ts'
import { type Format, formats, isDate, isDateTime } from '../../values/formats.ts'
import { textFields } from '../../values/profile-fields.ts'
import { coerceText } from '../../values/scalars.ts'
import { addressStates, type ConsentField, type Field, type Search } from './grammar.ts'

/** A fault of an operand. `path` is relative to the operand. */
export type OperandFault = { path: (string | number)[]; message: string }

/** The result of resolving a relative time: a date, or a date and time with an offset. */
export type TimeType = 'date' | 'datetime'

/**
 * The operands that a field accepts. Each check returns a fault, or undefined for a valid operand. Callers never check
 * `null`, which means a missing value.
 */
export type OperandType = {
  /** Checks the operand of an equality. A value that the field can never equal is a fault. */
  equality: (value: unknown) => OperandFault | undefined
  /** Checks a bound of a range. */
  bound: (value: unknown) => string | undefined
  /** Checks the operand of a text search. */
  search: (operator: Search, text: string) => string | undefined
  /** The type to which a text of a query string is converted. Undefined if it stays a text. */
  coercedTo?: 'number' | 'boolean' | undefined
  /** The type to which a relative time is resolved. Undefined for a field without times. */
  time?: TimeType | undefined
  /** Whether an equality compares texts, although several texts can mean the same moment. */
  equalsTexts?: true
}

type ScalarCheck = (value: unknown) => string | undefined
type Scalar = Omit<OperandType, 'equality'> & { equality: ScalarCheck }

const isString = (value: unknown): value is string => typeof value === 'string'
const accept = () => undefined
const unordered = (noun: string) => () => `requires values with an order, but this is ${noun}: use $eq or $in`
const unsearchable =
  (noun: string, instead = '$eq or $in') =>
  () =>
    `searches texts, but this is ${noun}: use ${instead}`

function notString(value: unknown): string | undefined {
  if (isString(value)) return undefined
  const isScalar = typeof value === 'number' || typeof value === 'boolean'
  return isScalar ? `must be a string: write "${value}"` : 'must be a string'
}

const notA = (type: 'number' | 'boolean') => (value: unknown) => {
  const coerced = isString(value) ? coerceText(value, type) : value
  if (typeof value === type) return undefined
  return typeof coerced === type ? `must be a ${type}: write ${coerced}, without quotes` : `must be a ${type}`
}

const notFormat =
  ({ holds, message }: Format) =>
  (value: unknown) =>
    isString(value) && holds(value) ? undefined : message

const notDate = (noun: string) => (value: unknown) =>
  isString(value) && isDateTime(value)
    ? `is a date and time; the ${noun} is a date: write ${value.slice(0, 10)}`
    : notFormat(formats.date!)(value)

const notDateTime = (noun: string) => (value: unknown) =>
  isString(value) && isDate(value)
    ? `${value} is a date; the ${noun} is a date and time: write ${value}T00:00:00Z`
    : notFormat(formats['date-time']!)(value)

/** Refuses a text that cannot be part of a value in the form of `pattern`, where a 9 means any of `digits`. */
function notPartOf(pattern: string, digits: RegExp, message: string): Scalar['search'] {
  return (operator, text) => {
    const needle = text.replace(digits, '9')
    const isPart = {
      $contains: pattern.includes(needle),
      $starts_with: pattern.startsWith(needle),
      $ends_with: pattern.endsWith(needle),
    }
    return isPart[operator] ? undefined : message
  }
}

const searchDate = notPartOf('9999-99-99', /\d/g, 'cannot be part of a date, YYYY-MM-DD')
const searchUuid = notPartOf('99999999-9999-9999-9999-999999999999', /[\da-f]/gi, 'cannot be part of a UUID')
const searchRecordId = notPartOf('9'.repeat(24), /[\da-f]/gi, 'cannot be part of a record_id')

const text: Scalar = { equality: notString, bound: notString, search: accept }
/** A text that is never empty in storage, because every write refuses an empty one. */
const name: Scalar = {
  ...text,
  equality: value => (value === '' ? 'is never empty: write null to match a missing value' : notString(value)),
}
const number: Scalar = {
  equality: notA('number'),
  bound: notA('number'),
  search: unsearchable('a number', '$gte and $lt'),
  coercedTo: 'number',
}
const boolean: Scalar = {
  equality: notA('boolean'),
  bound: unordered('a boolean'),
  search: unsearchable('a boolean'),
  coercedTo: 'boolean',
}
const timeScalar = (time: TimeType, check: ScalarCheck, search: Scalar['search']): Scalar => ({
  ...ordered(check, search),
  time,
})
const ordered = (check: ScalarCheck, search: Scalar['search']): Scalar => ({ equality: check, bound: check, search })
const json: Scalar = {
  equality: accept,
  bound: value => (isString(value) || typeof value === 'number' ? undefined : 'must be a string or a number'),
  search: accept,
}
const state: Scalar = {
  equality: value => (value === 'active' || value === 'placeholder' ? undefined : 'must be active or placeholder'),
  bound: unordered('a state'),
  search: unsearchable('a state'),
}

const datetime = timeScalar('datetime', notDateTime('attribute'), unsearchable('a date and time', '$gte and $lt'))

/** The scalars of attributes, by type. A relationship is compared by the external identifier of its target. */
const attributeScalars: Record<Attribute['type'], Scalar> = {
  text,
  number,
  boolean,
  date: timeScalar('date', notDate('attribute'), searchDate),
  datetime: { ...datetime, equalsTexts: true },
  json,
  person: name,
  stack: name,
}

/** The scalars of the fields that all entities of a kind have. */
const fieldScalars = {
  text,
  name,
  boolean,
  date: timeScalar('date', notDate('field'), searchDate),
  time: timeScalar('datetime', notDateTime('field'), unsearchable('a date and time', '$gte and $lt')),
  id: ordered(notFormat(formats.uuid!), searchUuid),
  record_id: ordered(notFormat(formats['object-id']!), searchRecordId),
  state,
}

/** The operands that the fields of a consent accept. */
export const consentOperandTypes: Record<ConsentField, OperandType> = {
  text_version: scalarOperand({
    ...number,
    equality: value => (Number.isInteger(value) && Number(value) >= 1 ? undefined : 'must be an integer of at least 1'),
  }),
  method: scalarOperand({
    equality: value => (methods.some(method => method === value) ? undefined : `must be one of: ${methods.join(', ')}`),
    bound: unordered('a method'),
    search: unsearchable('a method'),
  }),
  answered_at: scalarOperand(fieldScalars.time),
}

/** The operands that a measure of values of a type accepts. A measure of times is compared as a moment. */
export const measuredOperandType = (type: 'number' | 'text' | 'date' | 'datetime'): OperandType =>
  scalarOperand(type === 'datetime' ? datetime : attributeScalars[type])

/**
 * The operands that a field of a stack's entities accepts. An archived attribute accepts any value, like an undeclared
 * one.
 */
export function operandTypeOf(field: Field, { declared }: Definitions, stack_id: number): OperandType {
  if (field.kind !== 'attribute') return scalarOperand(fieldScalars[scalarOf(field)])
  const attribute = declared.get(stack_id)?.get(field.key)
  if (!attribute) return scalarOperand(json)
  const scalar = attributeScalars[attribute.type]
  // A json attribute accepts any operand, because one of its elements may itself be an array.
  const isMany = attribute.cardinality === 'many' && scalar !== json
  return isMany ? manyOperand(scalar, isRelationship(attribute)) : scalarOperand(scalar)
}

function scalarOf(field: Exclude<Field, { kind: 'attribute' }>): keyof typeof fieldScalars {
  if (field.kind !== 'text') return field.kind
  if (field.column === 'external_id') return 'name'
  const { type = 'text', format } = textFields[field.column]
  return type === 'text' && format ? 'name' : type
}

function scalarOperand(scalar: Scalar): OperandType {
  return { ...scalar, equality: value => faultOf(scalar.equality(value)) }
}

/** An attribute with many values equals a whole array, or one of its elements. */
function manyOperand(scalar: Scalar, isRelationship: boolean): OperandType {
  const notElement = (value: unknown) => (value === null ? 'must not be null' : scalar.equality(value))
  const equality = (value: unknown) => {
    if (!Array.isArray(value)) return faultOf(scalar.equality(value))
    // Reads show no array for a relationship without targets.
    if (isRelationship && value.length === 0) return faultOf('is never empty: write null to match a missing value')
    const index = value.findIndex(element => notElement(element) !== undefined)
    return index === -1 ? undefined : faultOf(notElement(value[index]), index)
  }
  return { ...scalar, equality }
}

function faultOf(message: string | undefined, ...path: number[]): OperandFault | undefined {
  return message === undefined ? undefined : { path, message }
}

/** The parts of a person's consent that a filter can test. */
type ConsentOperand = { consent_type_id?: number; channel?: Channel; state?: boolean; pending?: boolean }

type Part = { isValid: (value: unknown) => boolean; message: string; coercedTo?: 'number' | 'boolean' }

const flag: Part = { isValid: value => typeof value === 'boolean', message: 'must be a boolean', coercedTo: 'boolean' }
const oneOf = (values: readonly unknown[]): Part => ({
  isValid: value => values.includes(value),
  message: `must be one of: ${values.join(', ')}`,
})

const consentType: Part = {
  isValid: value => Number.isInteger(value) && Number(value) >= 1,
  message: 'must be an integer of at least 1',
  coercedTo: 'number',
}
const ofChannels = oneOf(channels)
const parts: Record<string, Part> = { consent_type_id: consentType, channel: ofChannels, state: flag, pending: flag }

/** Converts the parts of a consent in a query string, where all values are texts, to their types. */
export function consentFromQuery(operand: Record<string, unknown>): Record<string, unknown> {
  const convert = ([name, value]: [string, unknown]) => {
    const type = Object.hasOwn(parts, name) ? parts[name]!.coercedTo : undefined
    return [name, type && typeof value === 'string' ? coerceText(value, type) : value]
  }
  return Object.fromEntries(Object.entries(operand).map(convert))
}

/**
 * Returns the first fault of a consent operand: a wrong type, or a consent that no person can have. Undefined if it is
 * valid.
 */
export function consentFault(
  operand: Record<string, unknown>,
  consent_types: readonly ConsentType[],
): OperandFault | undefined {
  return partsFault(operand, parts) ?? unavailableConsentFault(operand as ConsentOperand, consent_types)
}

function partsFault(operand: Record<string, unknown>, parts: Record<string, Part>): OperandFault | undefined {
  for (const [name, value] of Object.entries(operand)) {
    const part = Object.hasOwn(parts, name) ? parts[name] : undefined
    if (!part) return { path: [name], message: 'unknown key' }
    if (!part.isValid(value)) return { path: [name], message: part.message }
  }
  return undefined
}

/** Returns the fault of a condition on addresses. Undefined if it is valid. */
export const deliverabilityFault = (operand: Record<string, unknown>): OperandFault | undefined =>
  partsFault(operand, { channel: ofChannels, state: oneOf(addressStates) })

/** Returns the parsed `contactable` condition, or its first fault. An archived type is valid, but matches no person. */
export function contactableQuestion(
  operand: Record<string, unknown>,
  consent_types: readonly ConsentType[],
): Question | OperandFault {
  const fault = partsFault(operand, { consent_type_id: consentType, channel: ofChannels })
  if (fault) return fault
  const missing = ['consent_type_id', 'channel'].find(name => operand[name] === undefined)
  if (missing) return { path: [missing], message: 'is required' }
  const { consent_type_id, channel } = operand as Question
  const type = consent_types.find(({ id }) => id === consent_type_id)
  if (!type) return { path: ['consent_type_id'], message: 'is not a consent type of the organization' }
  const available = type.channels.map(configured => configured.channel)
  if (available.includes(channel)) return { consent_type_id, channel }
  return { path: ['channel'], message: notAChannelOf(type, available) }
}

const notAChannelOf = ({ id }: ConsentType, available: readonly Channel[]) =>
  `is not a channel of consent type ${id}, which has: ${available.join(', ')}`

/** Refuses a consent that reads never show. They show one for each active type and each of its channels. */
function unavailableConsentFault(
  { consent_type_id, channel }: ConsentOperand,
  consent_types: readonly ConsentType[],
): OperandFault | undefined {
  const type = consent_types.find(({ id }) => id === consent_type_id)
  if (consent_type_id !== undefined && !type)
    return { path: ['consent_type_id'], message: 'is not a consent type of the organization' }
  if (type?.state === 'archived')
    return { path: ['consent_type_id'], message: 'is an archived consent type, for which people have no state' }
  const available = consentDefaults(type ? [type] : consent_types).map(({ consent }) => consent.channel)
  if (channel === undefined || available.includes(channel)) return undefined
  if (!type) return { path: ['channel'], message: 'is not a channel of an active consent type' }
  return { path: ['channel'], message: notAChannelOf(type, available) }
}
