import { peopleStackId } from '../../organizations/definitions.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { isDateTime } from '../../values/formats.ts'
import {
  attributePrefix,
  type ProfileFlag,
  type ProfileText,
  profileFlags,
  profileTexts,
} from '../../values/profile-fields.ts'
import { firstCharacters, termOf } from './index-keys.ts'

export const timeColumns = ['created_at', 'updated_at'] as const
export type SortTime = (typeof timeColumns)[number]

/** A field that sorts entities, and where its value is stored. */
export type SortField =
  | { kind: 'text'; column: ProfileText | 'external_id' }
  | { kind: 'boolean'; column: ProfileFlag }
  | { kind: 'time'; column: SortTime }
  | { kind: 'attribute'; key: string }

const recordFields = new Map<string, SortField>([
  ['external_id', { kind: 'text', column: 'external_id' }],
  ...timeColumns.map((column): [string, SortField] => [column, { kind: 'time', column }]),
])

const personFields = new Map<string, SortField>([
  ...recordFields,
  ...profileTexts.map((column): [string, SortField] => [column, { kind: 'text', column }]),
  ...profileFlags.map((column): [string, SortField] => [column, { kind: 'boolean', column }]),
])

/** The fixed fields that sort people, and those that sort records. */
export const sortFieldNames = (stack_id: number): string[] => [
  ...(stack_id === peopleStackId ? personFields : recordFields).keys(),
]

/**
 * The field with that name, or undefined. After `attribute_values.` the rest of the name is the key, including dots.
 */
export function sortFieldOf(name: string, stack_id: number): SortField | undefined {
  if (name.startsWith(attributePrefix)) return { kind: 'attribute', key: name.slice(attributePrefix.length) }
  return (stack_id === peopleStackId ? personFields : recordFields).get(name)
}

/** The sort term of an entity without a value, and of one with an array or object. It is greater than all others. */
export const noValueTerm = 'z'

/**
 * The sort term of a value: a letter for its kind, then a string that sorts by code point as the values do. A text
 * sorts by its letters without case and accents, then by itself. The first 64 characters of both count. The order does
 * not depend on a collation, whose versions differ.
 */
export function sortTermOf(type: AttributeType, value: unknown): string {
  if (typeof value !== 'string' || (type === 'datetime' && isDateTime(value))) return termOf(type, value) ?? noValueTerm
  const text = firstCharacters(value)
  return `s${foldText(text)}\u0001${text}`
}

const printableAscii = /^[ -~]*$/
// Control characters are removed too, so that every character left sorts after the separator.
const ignored = /[\p{M}\p{Cc}]/gu

function foldText(text: string): string {
  if (printableAscii.test(text)) return text.toLowerCase()
  return firstCharacters(text.normalize('NFKD').replace(ignored, '').toLowerCase())
}

/**
 * Compares texts by code point, as PostgreSQL does. JavaScript compares UTF-16 units, in which U+10000 is less than
 * U+E000.
 */
export function compareByCodePoint(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let index = 0; index < length; index += 1) {
    const [unit, otherUnit] = [one.charCodeAt(index), other.charCodeAt(index)]
    if (unit === otherUnit) continue
    if (isSurrogate(unit) !== isSurrogate(otherUnit)) return isSurrogate(unit) ? 1 : -1
    return unit - otherUnit
  }
  return one.length - other.length
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff
