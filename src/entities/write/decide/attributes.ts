import { ListEdit } from '../../../attributes/list-edit.ts'
import { internalKeys, tooManyMessage } from '../../../attributes/relationships/normalize.ts'
import { type Attribute, type Definitions, peopleStackId } from '../../../organizations/definitions.ts'
import { type Detail, pointer } from '../../../values/errors.ts'
import {
  type CurrentState,
  eachOnce,
  isShown,
  type Links,
  relationshipValue,
  shownTargets,
  type Target,
  writtenIdOf,
} from '../../entity-row.ts'
import {
  type LinkEdit,
  lookalikeOf,
  type Name,
  nameKey,
  type Plan,
  type PlannedLinks,
  type Reference,
  referenceKey,
} from '../plan.ts'
import { jsonEqual } from './json-equal.ts'

/** Target of a link: an existing entity, or the name of a placeholder that the write creates. */
export type PlannedTarget = Pick<Target, 'id' | 'is_deleted' | 'written_id'> | { name: Name }

/** A target that does not exist yet, with the JSON Pointer of the value that names it. */
export type PlannedMissing = { name: Name; pointer: string }

export type Relinked = { attribute: Attribute; before: readonly Target[]; targets: PlannedTarget[] }

/** The changes of a write to attribute values and links. */
export type AttributeChange = {
  changed: boolean
  /** Plain values to store, and keys whose plain value is removed. */
  set: Record<string, unknown>
  removed: string[]
  /**
   * Relationship attributes whose links to `before` are replaced by those to `targets`, in order. An empty array
   * removes the links.
   */
  relinked: Relinked[]
  /** Targets that do not exist yet, each with the JSON Pointer of the value that names it. */
  missing: PlannedMissing[]
  /** The faults of values that name no entity, or name it in a wrong way. */
  faults: Detail[]
  /** The changed keys in the format of a read. `before` is null for a new entity. */
  before: Record<string, unknown> | null
  after: Record<string, unknown>
  /**
   * Number of attribute values after the write, and whether their JSON exceeds the byte limit. Set only if `changed`.
   */
  keyCount: number
  isTooLarge: boolean
}

/** Returns the internal identifier of the entity. Undefined if it does not exist. */
export type Resolve = (reference: Reference) => string | undefined

const noAttributes: Record<string, unknown> = Object.freeze({})
const noLinks: Links = new Map()
const noTargets: ReadonlyMap<string, Target> = new Map()

/** Compares the keys of a write with the current state and returns the differences. */
export function decideAttributes(
  current: CurrentState | null,
  plan: Plan,
  resolve: Resolve,
  definitions: Definitions,
  maxEntityBytes: number,
  otherwiseNamed: ReadonlyMap<string, Target> = noTargets,
): AttributeChange {
  const attributes = current?.row.attributes ?? noAttributes
  const linked = linkedByKey(current?.links ?? noLinks, definitions)
  const change = emptyChange(current && {})
  for (const [key, value] of plan.plain)
    if (value instanceof ListEdit) editList(change, key, value, attributes, linked.get(key))
    else writePlain(change, key, value, attributes, linked.get(key))
  for (const [key, planned] of plan.links)
    writeLinks(change, planned, attributes, linked.get(key), resolve, otherwiseNamed)
  if (plan.clearsRest) {
    const untouched = (key: string) => !plan.plain.has(key) && !plan.links.has(key)
    for (const key of new Set([...Object.keys(attributes), ...linked.keys()]))
      if (untouched(key)) writePlain(change, key, null, attributes, linked.get(key))
  }
  change.changed = Object.keys(change.after).length > 0
  if (change.changed) measureEntity(change, attributes, linked, maxEntityBytes)
  return change
}

/** Plain values to set, null to clear, and the targets of relationship attributes. */
export type AttributeFill = {
  plain: ReadonlyMap<string, unknown>
  links: readonly { attribute: Attribute; targets: readonly Target[] }[]
}

/** As {@link decideAttributes}, for given values and targets instead of those of a request. */
export function fillAttributes(
  current: CurrentState,
  { plain, links }: AttributeFill,
  definitions: Definitions,
  maxEntityBytes: number,
): AttributeChange {
  const { attributes } = current.row
  const linked = linkedByKey(current.links, definitions)
  const change = emptyChange({})
  for (const [key, value] of plain) writePlain(change, key, value, attributes, linked.get(key))
  for (const { attribute, targets } of links) {
    const { key } = attribute
    change.relinked.push(relinked(attribute, linked.get(key), [...targets]))
    const kept = (linked.get(key) ?? []).filter(entry => !links.some(link => link.attribute.id === entry.attribute.id))
    const filled = links.filter(link => link.attribute.key === key && link.targets.length > 0)
    const after = [...kept, ...filled].toSorted((one, other) => one.attribute.id - other.attribute.id)
    recordChange(
      change,
      key,
      currentValue(key, attributes, linked.get(key)),
      currentValue(key, attributes, after.length > 0 ? after : undefined),
    )
  }
  change.changed = Object.keys(change.after).length > 0
  if (change.changed) measureEntity(change, attributes, linked, maxEntityBytes)
  return change
}

/** The change of an entity that does not change. `before` is null for a new one. */
export const emptyChange = (before: AttributeChange['before'] = null): AttributeChange => ({
  changed: false,
  set: {},
  removed: [],
  relinked: [],
  missing: [],
  faults: [],
  before,
  after: {},
  keyCount: 0,
  isTooLarge: false,
})

/** The links of one key, which several attributes may have had in turn. */
export type LinkedKey = { attribute: Attribute; targets: readonly Target[] }[]

const noLinkedKeys: ReadonlyMap<string, LinkedKey> = new Map()

export function linkedByKey(links: Links, definitions: Definitions): ReadonlyMap<string, LinkedKey> {
  if (links.size === 0) return noLinkedKeys
  const linked = [...links].flatMap(([attribute_id, targets]) => {
    const attribute = definitions.attributeById.get(attribute_id)
    return attribute ? { attribute, targets } : []
  })
  return Map.groupBy(linked, ({ attribute }) => attribute.key)
}

/** Returns the current value of a key in the format of a read; null if it has none. */
function currentValue(key: string, attributes: Record<string, unknown>, linked: LinkedKey | undefined): unknown {
  const last = linked?.findLast(({ targets }) => isShown(targets))
  if (last) return relationshipValue(last.attribute, shownTargets(last.targets))
  return Object.hasOwn(attributes, key) ? attributes[key] : null
}

function writePlain(
  change: AttributeChange,
  key: string,
  value: unknown,
  attributes: Record<string, unknown>,
  linked: LinkedKey | undefined,
) {
  const isStored = Object.hasOwn(attributes, key)
  if (!linked && (value === null ? !isStored : isStored && jsonEqual(attributes[key], value))) return
  recordChange(change, key, currentValue(key, attributes, linked), value)
  for (const { attribute } of linked ?? []) change.relinked.push(relinked(attribute, linked, []))
  if (value !== null) defineKey(change.set, key, value)
  else if (isStored) change.removed.push(key)
}

/** Adds and removes single elements of a list. A list that is empty before and after is not stored. */
function editList(
  change: AttributeChange,
  key: string,
  edit: ListEdit,
  attributes: Record<string, unknown>,
  linked: LinkedKey | undefined,
) {
  const path = pointer('attribute_values', key)
  const stored = currentValue(key, attributes, linked)
  if (linked?.some(({ targets }) => isShown(targets)) || (stored !== null && !Array.isArray(stored))) {
    const message = 'has a value from before the declaration of the list. Send the whole list once'
    change.faults.push({ path, message })
    return
  }
  const after = edit.applyTo((stored ?? []) as unknown[])
  if (edit.isRequired && after.length === 0) change.faults.push({ path, message: 'is required' })
  if (stored !== null || after.length > 0) writePlain(change, key, after, attributes, linked)
}

function writeLinks(
  change: AttributeChange,
  planned: PlannedLinks,
  attributes: Record<string, unknown>,
  linked: LinkedKey | undefined,
  resolve: Resolve,
  otherwiseNamed: ReadonlyMap<string, Target>,
) {
  const { attribute } = planned
  const { key } = attribute
  const resolved = resolveTargets(planned, resolve, otherwiseNamed, change.faults)
  const isStored = Object.hasOwn(attributes, key)
  if (planned.edit) {
    editLinks(change, planned, planned.edit, resolved, isStored, linked, resolve)
    return
  }
  const targets = resolved.map(({ target }) => target)
  if (!isStored && sameLinks(attribute, targets, linked)) return
  recordChange(
    change,
    key,
    currentValue(key, attributes, linked),
    resolved.length > 0 ? relationshipValue(attribute, resolved) : null,
  )
  if (isStored) change.removed.push(key)
  relink(change, attribute, linked, targets)
  addMissing(change, resolved)
}

/** Replaces the links of a key, including those of earlier attributes with this key. */
function relink(
  change: AttributeChange,
  attribute: Attribute,
  linked: LinkedKey | undefined,
  targets: PlannedTarget[],
) {
  for (const other of linked ?? [])
    if (other.attribute.id !== attribute.id) change.relinked.push(relinked(other.attribute, linked, []))
  change.relinked.push(relinked(attribute, linked, targets))
}

function addMissing(change: AttributeChange, resolved: Resolved[]) {
  for (const { target, pointer } of resolved) if ('name' in target) change.missing.push({ name: target.name, pointer })
}

/**
 * Adds and removes single links. The other links keep their order. Hidden links to deleted targets stay too, because a
 * restore brings them back. They count toward the limit, so that it also holds after the restore.
 */
function editLinks(
  change: AttributeChange,
  { attribute }: PlannedLinks,
  edit: LinkEdit,
  resolved: Resolved[],
  isStored: boolean,
  linked: LinkedKey | undefined,
  resolve: Resolve,
) {
  const { key } = attribute
  const { faults } = change
  const faultOf = (message: string, path = pointer('attribute_values', key)) => faults.push({ path, message })
  const shown = linked?.findLast(({ targets }) => isShown(targets))
  // An addition would remove the value that a read shows under this key, which the client did not request.
  if (shown ? shown.attribute.id !== attribute.id : isStored) {
    faultOf('has a value from before the declaration of the relationship. Send the list of all targets once')
    return
  }
  const current = linked?.find(entry => entry.attribute.id === attribute.id)?.targets ?? []
  const removed = removedKeys(edit, resolve, faults)
  for (const { target, pointer } of resolved)
    if (removed.has('id' in target ? target.id : nameKey(target.name)))
      faultOf('is in "$remove" as well. Name it in one of them', pointer)
  const kept = current.filter(target => !removed.has(target.id) && !removed.has(writtenIdOf(target)))
  const linkedIds = new Set(current.map(({ id }) => id))
  const added = resolved.filter(({ id }) => id === undefined || !linkedIds.has(id))
  const after = [...shownTargets(kept), ...added]
  if (attribute.required && after.length === 0) faultOf('is required')
  if (added.length > 0 && kept.length + added.length > edit.maxLinks)
    faultOf(tooManyMessage(edit.maxLinks), pointer('attribute_values', key, '$add'))
  if (added.length === 0 && kept.length === current.length) return
  const before = shown ? relationshipValue(attribute, shownTargets(shown.targets)) : null
  recordChange(change, key, before, after.length > 0 ? relationshipValue(attribute, after) : null)
  relink(change, attribute, linked, [...kept, ...added.map(({ target }) => target)])
  addMissing(change, added)
}

/** The ids of the entities whose links end, and the names that no entity has. */
function removedKeys({ removed, pointers }: LinkEdit, resolve: Resolve, faults: Detail[]): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const [index, reference] of removed.entries()) {
    const id = resolve(reference)
    if (id !== undefined) keys.add(id)
    // The identifier of a deleted entity removes its hidden link.
    else if ('id' in reference) keys.add(reference.id)
    else {
      const message = unresolvedMessage(reference, resolve)
      if (message === undefined) keys.add(nameKey(reference))
      else faults.push({ path: pointers[index]!, message })
    }
  }
  return keys
}

const relinked = (attribute: Attribute, linked: LinkedKey | undefined, targets: PlannedTarget[]): Relinked => ({
  attribute,
  before: linked?.find(entry => entry.attribute.id === attribute.id)?.targets ?? [],
  targets,
})

type Resolved = { target: PlannedTarget; id?: string; external_id: string | null; pointer: string }

/**
 * Resolves the targets, and adds a fault for each that must exist and does not. A target that is named by an alias or
 * an internal identifier is shown by its own name, and counts once.
 */
function resolveTargets(
  { references, pointers }: PlannedLinks,
  resolve: Resolve,
  otherwiseNamed: ReadonlyMap<string, Target>,
  faults: Detail[],
): Resolved[] {
  const resolved: Resolved[] = []
  const ids = new Set<string>()
  for (const [index, reference] of references.entries()) {
    const pointer = pointers[index]!
    const id = resolve(reference)
    if (id === undefined) {
      const message = unresolvedMessage(reference, resolve)
      if (message !== undefined) faults.push({ path: pointer, message })
      else resolved.push({ target: { name: reference as Name }, external_id: (reference as Name).external_id, pointer })
    } else if (!ids.has(id)) {
      ids.add(id)
      const known = otherwiseNamed.size === 0 ? undefined : otherwiseNamed.get(referenceKey(reference))
      const external_id = known ? known.external_id : (reference as Name).external_id
      resolved.push({ target: { id }, id, external_id, pointer })
    }
  }
  return resolved
}

/** The reason why a missing target is not created. Undefined if it is created. */
function unresolvedMessage(reference: Reference, resolve: Resolve): string | undefined {
  if ('id' in reference)
    return reference.stack_id === peopleStackId
      ? 'names an entity that does not exist'
      : 'names a record that does not exist in the stack of the relationship'
  const lookalike = lookalikeOf(reference)
  if (!lookalike || resolve(lookalike) === undefined) return undefined
  const key = internalKeys[reference.stack_id === peopleStackId ? 'person' : 'record']
  return `is the internal identifier of an entity, and no external identifier. Link to that entity with {"${key}": "${reference.external_id}"}`
}

function sameLinks(attribute: Attribute, targets: PlannedTarget[], linked: LinkedKey | undefined): boolean {
  if (!linked) return targets.length === 0
  const [only, ...others] = linked
  if (others.length > 0 || only?.attribute.id !== attribute.id) return false
  const current = eachOnce(only.targets)
  return (
    current.length === targets.length &&
    targets.every((target, index) => 'id' in target && target.id === current[index]!.id)
  )
}

function recordChange(change: AttributeChange, key: string, before: unknown, after: unknown) {
  if (change.before) defineKey(change.before, key, before)
  defineKey(change.after, key, after)
}

/** Sets a key that a client chose, without calling a setter of the prototype. */
function defineKey(target: Record<string, unknown>, key: string, value: unknown) {
  if (key in target) Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  else target[key] = value
}

/** Counts the attribute values and their JSON bytes after the write, plain values and links. */
function measureEntity(
  change: AttributeChange,
  attributes: Record<string, unknown>,
  linked: ReadonlyMap<string, LinkedKey>,
  maxEntityBytes: number,
) {
  // The braces, without the comma that the last value does not have.
  let [bytes, maxBytes] = [1, 2]
  eachValue(change, attributes, linked, (key, value) => {
    change.keyCount += 1
    maxBytes += maxJsonBytes(key) + maxJsonBytes(value)
  })
  // Entities near the limit are rare. For the others this upper bound saves printing each value as JSON.
  if (maxBytes <= maxEntityBytes) return
  eachValue(change, attributes, linked, (key, value) => {
    bytes += Buffer.byteLength(JSON.stringify(key)) + 2 + Buffer.byteLength(JSON.stringify(value)) + zeroBytes(value)
  })
  change.isTooLarge = bytes > maxEntityBytes
}

/** Visits the attribute values of the entity after the write. */
function eachValue(
  { after }: AttributeChange,
  attributes: Record<string, unknown>,
  linked: ReadonlyMap<string, LinkedKey>,
  visit: (key: string, value: unknown) => void,
) {
  for (const key in after) if (after[key] !== null) visit(key, after[key])
  for (const [key, stored] of linked) {
    const value = currentValue(key, attributes, stored)
    if (value !== null && !Object.hasOwn(after, key)) visit(key, value)
  }
  for (const key in attributes)
    if (attributes[key] !== null && !Object.hasOwn(after, key) && !linked.has(key)) visit(key, attributes[key])
}

/**
 * Upper bound of the JSON bytes of a value with its separators. A character takes at most six bytes (`\u001f`), a
 * number 25 bytes plus its zeros.
 */
export function maxJsonBytes(value: unknown): number {
  if (typeof value === 'string') return 6 * value.length + 4
  if (typeof value === 'number') return 32 + zeroBytes(value)
  if (typeof value !== 'object' || value === null) return 32
  let bytes = 4
  if (Array.isArray(value)) for (const element of value) bytes += maxJsonBytes(element)
  else for (const key in value) bytes += maxJsonBytes(key) + maxJsonBytes((value as Record<string, unknown>)[key])
  return bytes
}

/**
 * Extra bytes of the numbers in a value. PostgreSQL prints a small number with all its zeros: `1e-300` takes 302 bytes,
 * and a request of 420 kB was read back as 18 MB. Large numbers are integers that no double holds exactly, and they are
 * refused earlier.
 */
function zeroBytes(value: unknown): number {
  if (typeof value === 'number')
    return value !== 0 && Math.abs(value) < 1e-6 ? Number(/e-(\d+)$/.exec(`${value}`)![1]) : 0
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((bytes, inner) => bytes + zeroBytes(inner), 0)
}
