import { isDate, isDateTime } from '../formats.ts'
import type { Attribute, AttributeType } from '../organizations/definitions.ts'

type PlainType = Exclude<AttributeType, 'person' | 'stack'>

const rules: Record<PlainType, { holds: (value: unknown) => boolean; message: string }> = {
  text: { holds: value => typeof value === 'string', message: 'must be a string' },
  number: { holds: value => typeof value === 'number', message: 'must be a number' },
  boolean: { holds: value => typeof value === 'boolean', message: 'must be true or false' },
  date: { holds: value => typeof value === 'string' && isDate(value), message: 'must be a date, YYYY-MM-DD' },
  datetime: {
    holds: value => typeof value === 'string' && isDateTime(value),
    message: 'must be a date and time with its offset, as RFC 3339 has it',
  },
  json: { holds: () => true, message: '' },
}

export type ValueFault = { path: (string | number)[]; message: string }

/**
 * What is wrong with a value for a declared attribute that is no relationship; undefined where it fits.
 * Cardinality `many` takes an array whose every element fits the type. Paths are relative to the value.
 */
export function valueFault(attribute: Attribute, value: unknown): ValueFault | undefined {
  const rule = rules[attribute.type as PlainType]
  if (attribute.cardinality === 'one') return rule.holds(value) ? undefined : { path: [], message: rule.message }
  if (!Array.isArray(value)) return { path: [], message: 'must be an array: the attribute holds many values' }
  const index = value.findIndex(element => element === null || !rule.holds(element))
  return index === -1 ? undefined : { path: [index], message: rule.message || 'must not be null' }
}

const numeral = /^-?(0|[1-9]\d*)(\.\d+)?$/

/** A text of a query string as the declared type has it; anything that does not read back equal stays a text. */
export function coerceText(attribute: Attribute, value: unknown): unknown {
  if (Array.isArray(value) && attribute.cardinality === 'many')
    return value.map(element => coerceScalar(attribute.type, element))
  return coerceScalar(attribute.type, value)
}

function coerceScalar(type: AttributeType, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  if (type !== 'number' || !numeral.test(value)) return value
  const number = Number(value)
  return String(number) === value ? number : value
}
