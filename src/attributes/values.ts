import type { Attribute } from '../organizations/definitions.ts'
import type { AttributeType } from '../values/attribute-rules.ts'
import { isDate, isDateTime } from '../values/formats.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import { coerceText } from '../values/scalars.ts'

type PlainType = Exclude<AttributeType, 'person' | 'stack'>

const rules: Record<PlainType, { isValid: (value: unknown) => boolean; message: string }> = {
  text: { isValid: value => typeof value === 'string', message: 'must be a string' },
  number: { isValid: value => typeof value === 'number', message: 'must be a number' },
  boolean: { isValid: value => typeof value === 'boolean', message: 'must be true or false' },
  date: { isValid: value => typeof value === 'string' && isDate(value), message: 'must be a date, YYYY-MM-DD' },
  datetime: {
    isValid: value => typeof value === 'string' && isDateTime(value),
    message: 'must be a date and time with its offset, as in RFC 3339',
  },
  json: { isValid: () => true, message: '' },
}

type TypedAttribute = Pick<Attribute, 'type' | 'cardinality'>

/** A fault of a value. `path` is relative to the value. */
export type ValueFault = { path: (string | number)[]; message: string }

/**
 * Checks a value for a declared attribute that is not a relationship. Returns the first fault, or undefined if the
 * value is valid. Cardinality `many` requires an array whose elements are valid for the type and not null.
 */
export function valueFault(attribute: TypedAttribute, value: unknown): ValueFault | undefined {
  const rule = rules[attribute.type as PlainType]
  if (attribute.cardinality === 'one')
    return rule.isValid(value) ? undefined : { path: [], message: withUnseen(rule.message, value) }
  if (!Array.isArray(value)) return { path: [], message: 'must be an array: the attribute holds many values' }
  const index = value.findIndex(element => element === null || !rule.isValid(element))
  return index === -1
    ? undefined
    : { path: [index], message: withUnseen(rule.message || 'must not be null', value[index]) }
}

/**
 * Converts a value of a query string from text to the declared type. If the attribute has many values, converts each
 * element of a list.
 */
export function coerceValue(attribute: TypedAttribute, value: unknown): unknown {
  if (Array.isArray(value) && attribute.cardinality === 'many')
    return value.map(element => coerceElement(attribute.type, element))
  return coerceElement(attribute.type, value)
}

function coerceElement(type: AttributeType, value: unknown): unknown {
  if (typeof value !== 'string' || (type !== 'boolean' && type !== 'number')) return value
  return coerceText(value, type)
}
