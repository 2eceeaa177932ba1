import { createHash } from 'node:crypto'
import type { Attribute } from '../../organizations/definitions.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { isDate, isDateTime } from '../../values/formats.ts'
import { instantOf } from '../../values/instant.ts'

/** A row of `terms`, without its organization. */
export type Term = { index_id: number; value: string; entity_id: string }

// A btree key has at most 2.7 kB. 64 characters have at most 256 bytes.
const prefixCharacters = 64
// Makes the seconds of the years 1 to 9999 positive, so that they sort as strings.
const secondsBase = 1e12
const secondsDigits = 13

/**
 * The index key (term) of a scalar: a letter for its kind, then a string that sorts by code point as the values do. Two
 * values have the same term if and only if they are equal. Times have the same term if they are the same moment. The
 * term of a text longer than 64 characters has its first 64 and a hash, so it sorts correctly against every text of at
 * most 64. Returns undefined for values without a term: null, objects, arrays.
 */
export function termOf(type: AttributeType, value: unknown): string | undefined {
  if (typeof value === 'number') return `n${sortableNumber(value)}`
  if (typeof value === 'boolean') return value ? 'b1' : 'b0'
  if (typeof value !== 'string') return undefined
  if (type === 'datetime' && isDateTime(value)) return `i${sortableInstant(value)}`
  // A date attribute may hold texts from before its declaration, which belong to no range of dates.
  if (type === 'date' && isDate(value)) return `d${value}`
  const first = firstCharacters(value)
  return first.length === value.length ? `s${value}` : `s${first}${hashOf(value)}`
}

/** Whether the terms in a range with this operand are exactly those of the values in the range. */
export const isInOrder = (operand: string | number): boolean =>
  typeof operand === 'number' || firstCharacters(operand).length === operand.length

/**
 * Whether the values with this term are equal to each other as JSON. Times with one term may be written differently.
 */
export const isOneValue = (term: string): boolean => !term.startsWith('i')

const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, 22)

/** The first characters of a text, by default 64. */
export const firstCharacters = (text: string, max = prefixCharacters): string =>
  text.length <= max ? text : [...text.slice(0, 2 * max)].slice(0, max).join('')

/** The properties of an attribute that its index depends on. */
export type Indexed = Pick<Attribute, 'type' | 'cardinality'>

/**
 * The distinct terms of a stored value. An array has the terms of its elements, but none if the attribute has one
 * value. Such an array is older than the declaration, and no condition on one value matches it.
 */
export function termsOf({ type, cardinality }: Indexed, value: unknown): Set<string> {
  const scalars = Array.isArray(value) && cardinality === 'many' ? value : [value]
  return new Set(scalars.map(scalar => termOf(type, scalar)).filter(term => term !== undefined))
}

/** The bounds of all terms of a kind: its letter (inclusive) and the next letter (exclusive). */
export function kindBounds(term: string): [first: string, end: string] {
  return [term[0]!, String.fromCharCode(term.charCodeAt(0) + 1)]
}

/** The bounds of all texts that begin with the first 64 characters of a longer one (both inclusive). */
export function prefixBounds(text: string): [first: string, last: string] {
  const first = `s${firstCharacters(text)}`
  return [first, `${first}\u{10ffff}`]
}

/** Encodes a double as 16 hexadecimal digits that sort as the numbers do. */
function sortableNumber(value: number): string {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value === 0 ? 0 : value)
  const bits = view.getBigUint64(0)
  const sign = 1n << 63n
  return (bits & sign ? ~bits & ((1n << 64n) - 1n) : bits | sign).toString(16).padStart(16, '0')
}

function sortableInstant(text: string): string {
  const { seconds, fraction } = instantOf(text)
  return String(seconds + secondsBase).padStart(secondsDigits, '0') + fraction
}
