import { isExternalId } from '../formats.ts'
import { trim } from '../white-space.ts'

/**
 * The external identifiers a relationship value names, in order, each once; empty means unlink. `places` says where in
 * the value each was named first: `[]` for a scalar, else its index.
 */
export type Normalized =
  | { names: string[]; places: number[][] }
  | { refused: { path: (string | number)[]; message: string } }

type Scalar = { name: string | null } | { message: string }

const shapes = 'must be an external identifier: a string, an integer, {"external_id": …}, or null to unlink'

/**
 * Normalizes the value of a relationship attribute. `null`, `""` and `[]` unlink; a string is trimmed; an integer
 * becomes its decimal string; `{"external_id": …}` is its scalar; an array belongs to cardinality `many` (one element
 * is accepted for `one`) and loses duplicates; a scalar on `many` is an array of one. Paths are relative to the value.
 */
export function normalizeRelationship(value: unknown, cardinality: 'one' | 'many', linksLimit: number): Normalized {
  if (Array.isArray(value)) return normalizeList(value, cardinality, linksLimit)
  const scalar = normalizeScalar(value)
  if ('message' in scalar) return { refused: { path: [], message: scalar.message } }
  return scalar.name === null ? { names: [], places: [] } : { names: [scalar.name], places: [[]] }
}

function normalizeList(values: unknown[], cardinality: 'one' | 'many', linksLimit: number): Normalized {
  if (cardinality === 'one' && values.length > 1)
    return { refused: { path: [], message: 'must be a single external identifier: the attribute links to one' } }
  if (values.length > linksLimit) return { refused: { path: [], message: tooMany(linksLimit) } }
  const places = new Map<string, number[]>()
  for (const [index, value] of values.entries()) {
    const scalar = normalizeScalar(value)
    if ('message' in scalar) return { refused: { path: [index], message: scalar.message } }
    // Within a list nothing is dropped in silence: an element either names somebody or is refused.
    if (scalar.name === null) return { refused: { path: [index], message: 'must name an entity' } }
    if (!places.has(scalar.name)) places.set(scalar.name, [index])
  }
  return { names: [...places.keys()], places: [...places.values()] }
}

const tooMany = (linksLimit: number) =>
  `must have at most ${linksLimit} elements. Model the relationship from the other side instead: declare an attribute there, ` +
  'and let each of them link to this entity'

function normalizeScalar(value: unknown): Scalar {
  if (value === null) return { name: null }
  if (typeof value === 'string') return nameFrom(trim(value))
  if (typeof value === 'number' && Number.isInteger(value)) return nameFrom(String(value))
  const inner = wrapped(value)
  return inner === undefined ? { message: shapes } : normalizeScalar(inner)
}

/** The scalar inside `{"external_id": …}`; undefined where the value has another shape. */
function wrapped(value: unknown): string | number | null | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const entries = Object.entries(value)
  const inner: unknown = entries.length === 1 && entries[0]![0] === 'external_id' ? entries[0]![1] : undefined
  return inner === null || typeof inner === 'string' || typeof inner === 'number' ? inner : undefined
}

function nameFrom(text: string): Scalar {
  if (text === '') return { name: null }
  return isExternalId(text) ? { name: text } : { message: 'must be a valid external identifier of 1 to 255 characters' }
}
