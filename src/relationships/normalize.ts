import { isExternalId } from '../formats.ts'
import { trim } from '../white-space.ts'

/**
 * The external identifiers that a relationship value names, in order and without duplicates. Empty means unlink. `paths` has
 * the path of each name's first occurrence in the value: `[]` for a scalar, otherwise its index.
 */
export type Normalized =
  | { names: string[]; paths: number[][] }
  | { fault: { path: (string | number)[]; message: string } }

type Scalar = { name: string | null } | { message: string }

const shapeMessage = 'must be an external identifier: a string, an integer, {"external_id": …}, or null to unlink'

/**
 * Normalizes the value of a relationship attribute. `null`, `""` and `[]` unlink. A string is trimmed, an integer becomes its
 * decimal string, and `{"external_id": …}` counts as the scalar inside. Duplicates in an array are removed. Cardinality `one`
 * accepts an array of one element, and `many` accepts a scalar as an array of one. Paths are relative to the value.
 */
export function normalizeRelationship(value: unknown, cardinality: 'one' | 'many', linksLimit: number): Normalized {
  if (Array.isArray(value)) return normalizeList(value, cardinality, linksLimit)
  const scalar = normalizeScalar(value)
  if ('message' in scalar) return { fault: { path: [], message: scalar.message } }
  return scalar.name === null ? { names: [], paths: [] } : { names: [scalar.name], paths: [[]] }
}

function normalizeList(values: unknown[], cardinality: 'one' | 'many', linksLimit: number): Normalized {
  if (cardinality === 'one' && values.length > 1)
    return { fault: { path: [], message: 'must be a single external identifier: the attribute links to one entity' } }
  if (values.length > linksLimit) return { fault: { path: [], message: tooManyMessage(linksLimit) } }
  const paths = new Map<string, number[]>()
  for (const [index, value] of values.entries()) {
    const scalar = normalizeScalar(value)
    if ('message' in scalar) return { fault: { path: [index], message: scalar.message } }
    // Within a list, an empty element is a fault, because dropping it silently would hide a mistake.
    if (scalar.name === null) return { fault: { path: [index], message: 'must name an entity' } }
    if (!paths.has(scalar.name)) paths.set(scalar.name, [index])
  }
  return { names: [...paths.keys()], paths: [...paths.values()] }
}

const tooManyMessage = (linksLimit: number) =>
  `must have at most ${linksLimit} elements. Model the relationship from the other side: declare an attribute on the targets, ` +
  'and link each of them to this entity'

function normalizeScalar(value: unknown): Scalar {
  if (value === null) return { name: null }
  if (typeof value === 'string') return nameFrom(trim(value))
  if (typeof value === 'number' && Number.isInteger(value)) return nameFrom(String(value))
  const inner = unwrap(value)
  return inner === undefined ? { message: shapeMessage } : normalizeScalar(inner)
}

/** The scalar inside `{"external_id": …}`. Undefined if the value has another shape. */
function unwrap(value: unknown): string | number | null | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const entries = Object.entries(value)
  const inner: unknown = entries.length === 1 && entries[0]![0] === 'external_id' ? entries[0]![1] : undefined
  return inner === null || typeof inner === 'string' || typeof inner === 'number' ? inner : undefined
}

function nameFrom(text: string): Scalar {
  if (text === '') return { name: null }
  return isExternalId(text) ? { name: text } : { message: 'must be a valid external identifier of 1 to 255 characters' }
}
