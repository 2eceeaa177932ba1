import { isExternalId, isObjectId, isUuid } from '../../values/formats.ts'
import { withUnseen } from '../../values/invisible-characters.ts'
import { trim } from '../../values/white-space.ts'
import type { ValueFault } from '../values.ts'

/** An entity that a relationship value names. `id` is the internal identifier as in its reads, in lower case. */
export type Reference = { external_id: string } | { id: string }

/**
 * The entities that a relationship value names, in order and without duplicates. An empty list means unlink. `paths`
 * has the path of the first occurrence of each in the value: `[]` for a scalar, otherwise its index.
 */
type Normalized = NamedTargets | { fault: ValueFault }
type NamedTargets = { references: Reference[]; paths: ValueFault['path'][] }

/** The entities whose links a value adds and removes, as {@link Normalized}. */
type NormalizedEdit = { added: NamedTargets; removed: NamedTargets } | { fault: ValueFault }

/** The members that name the internal identifier of a target, in reads and relationship values. */
export const internalKeys = { person: 'id', record: 'record_id' } as const
export type TargetKind = keyof typeof internalKeys

const isInternalId = { person: isUuid, record: isObjectId }

/** A cardinality, the maximum number of links, and the kind of the targets. */
type Rules = { cardinality: 'one' | 'many'; maxLinks: number; kind: TargetKind }

type Scalar = { reference: Reference | null } | { message: string }

const shapeMessage = (kind: TargetKind) =>
  `must be an external identifier: a string, an integer, {"external_id": …}, an internal identifier: {"${internalKeys[kind]}": …}, or null to unlink`

/**
 * Normalizes the value of a relationship attribute. `null`, `""` and `[]` unlink. A string is trimmed, an integer
 * becomes its decimal string, and `{"external_id": …}` counts as the scalar inside. `{"id": …}`, for a record
 * `{"record_id": …}`, is the internal identifier of an entity. Duplicates in an array are removed. Cardinality `one`
 * accepts an array of one element, and `many` accepts a scalar as an array of one. Paths are relative to the value.
 */
export function normalizeRelationship(value: unknown, rules: Rules): Normalized {
  if (Array.isArray(value)) return normalizeList(value, rules)
  const scalar = normalizeScalar(value, rules.kind)
  if ('message' in scalar) return { fault: { path: [], message: scalar.message } }
  return scalar.reference === null ? { references: [], paths: [] } : { references: [scalar.reference], paths: [[]] }
}

function normalizeList(values: unknown[], { cardinality, maxLinks, kind }: Rules): Normalized {
  if (cardinality === 'one' && values.length > 1)
    return { fault: { path: [], message: 'must be a single external identifier: the attribute links to one entity' } }
  const seen = new Set<string>()
  const [references, paths]: [Reference[], number[][]] = [[], []]
  for (const [index, value] of values.entries()) {
    const scalar = normalizeScalar(value, kind)
    if ('message' in scalar) return { fault: { path: [index], message: scalar.message } }
    const { reference } = scalar
    // An empty element of a list is a fault, because dropping it silently would hide a mistake.
    if (reference === null) return { fault: { path: [index], message: 'must name an entity: leave the element out' } }
    // External identifiers have no line feed, so no two keys collide.
    const key = 'id' in reference ? `\n${reference.id}` : reference.external_id
    if (seen.has(key)) continue
    seen.add(key)
    if (references.push(reference) > maxLinks) return { fault: { path: [], message: tooManyMessage(maxLinks) } }
    paths.push([index])
  }
  return { references, paths }
}

const notManyMessage =
  'changes single links of a relationship of cardinality many, and this attribute links to one entity. Send its external identifier, or null to unlink'

/** Normalizes an edit of single links. Each list is normalized as in {@link normalizeRelationship}. */
export function normalizeEdit({ $add, $remove }: { $add?: unknown; $remove?: unknown }, rules: Rules): NormalizedEdit {
  if (rules.cardinality === 'one') return { fault: { path: [], message: notManyMessage } }
  const lists: NamedTargets[] = []
  for (const [key, value] of Object.entries({ $add, $remove })) {
    if (value !== undefined && !Array.isArray(value))
      return { fault: { path: [key], message: 'must be an array of external identifiers' } }
    const list = normalizeList(value ?? [], rules)
    if ('fault' in list) return { fault: { ...list.fault, path: [key, ...list.fault.path] } }
    lists.push({ ...list, paths: list.paths.map(path => [key, ...path]) })
  }
  const [added, removed] = lists as [NamedTargets, NamedTargets]
  return { added, removed }
}

export const tooManyMessage = (maxLinks: number) =>
  `must have at most ${maxLinks} links. Model the relationship from the other side: declare an attribute on the targets, ` +
  'and link each of them to this entity'

function normalizeScalar(value: unknown, kind: TargetKind): Scalar {
  if (typeof value !== 'object' || value === null) return named(value) ?? { message: shapeMessage(kind) }
  const entries = Array.isArray(value) ? [] : Object.entries(value)
  const [key, inner] = entries.length === 1 ? entries[0]! : []
  if (key === internalKeys[kind]) return identified(inner, kind)
  return (key === 'external_id' && named(inner)) || { message: shapeMessage(kind) }
}

/** The entity with this external identifier. Undefined if the value has another type. */
function named(value: unknown): Scalar | undefined {
  if (value === null) return { reference: null }
  const text = typeof value === 'string' ? trim(value) : Number.isInteger(value) ? String(value) : undefined
  if (text === undefined) return undefined
  if (text === '') return { reference: null }
  return isExternalId(text)
    ? { reference: { external_id: text } }
    : { message: withUnseen('must be a valid external identifier of 1 to 255 characters', text) }
}

function identified(value: unknown, kind: TargetKind): Scalar {
  const text = typeof value === 'string' ? trim(value) : ''
  if (isInternalId[kind](text)) return { reference: { id: text.toLowerCase() } }
  return {
    message: `must have the ${internalKeys[kind]} of a ${kind}: ${kind === 'person' ? 'a UUID' : '24 hexadecimal digits'}`,
  }
}

/** Whether an external identifier looks like an internal one. */
export const looksInternal = (external_id: string, kind: TargetKind): boolean => isInternalId[kind](external_id)
