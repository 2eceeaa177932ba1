import { isDate, isDateTime } from '../formats.ts'
import type { Attribute, AttributeType } from '../organizations/definitions.ts'
import { coerceText } from '../scalars.ts'

type PlainType = Exclude<AttributeType, 'person' | 'stack'>

const rules: Record<PlainType, { holds: (value: unknown) => boolean; message: string }> = {
  text: { holds: value => typeof value === 'string', message: 'must be a string' },
  number: { holds: value => typeof value === 'number', message: 'must be a number' },
  boolean: { holds: value => typeof value === 'boolean', message: 'must be true or false' },
  date: { holds: value => typeof value === 'string' && isDate(value), message: 'must be a date, YYYY-MM-DD' },
  datetime: {
    holds: value => typeof value === 'string' && isDateTime(value),
    message: 'must be a date and time with its offset, as in RFC 3339',
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

/** What a query string gave, its texts as the declared type has them: each of a list, where the attribute holds many. */
export function coerceValue(attribute: Attribute, value: unknown): unknown {
  if (Array.isArray(value) && attribute.cardinality === 'many')
    return value.map(element => coerceElement(attribute.type, element))
  return coerceElement(attribute.type, value)
}

function coerceElement(type: AttributeType, value: unknown): unknown {
  if (typeof value !== 'string' || (type !== 'boolean' && type !== 'number')) return value
  return coerceText(value, type)
}
