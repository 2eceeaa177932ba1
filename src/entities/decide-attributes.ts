import type { Attribute, Definitions } from '../organizations/definitions.ts'
import { type CurrentState, type Links, shownLinks, type Target } from './entity-row.ts'
import { jsonEqual } from './json-equal.ts'
import type { Name, Plan, PlannedLinks } from './plan-write.ts'

/** Where one link will point: to an entity that stands, or to a name that the write brings to life. */
export type PlannedTarget = { id: string } | { name: Name }

/** What a write does to attribute values and links. */
export type AttributeChange = {
  changed: boolean
  /** Plain values to store, and keys whose plain value goes. */
  set: Record<string, unknown>
  removed: string[]
  /** Relationship attributes whose links are replaced, by these in order; none unlinks. */
  relinked: { attribute: Attribute; targets: PlannedTarget[] }[]
  /** The targets that nobody bears the name of yet, each with the place that names it. */
  missing: { name: Name; pointer: string }[]
  /** The keys that differ, as a read shows them; `before` is null where no entity stood. */
  before: Record<string, unknown> | null
  after: Record<string, unknown>
  /** Of the entity after the write: its attribute values, and whether their JSON has more bytes than it may have. */
  keyCount: number
  isTooLarge: boolean
}

type Bearer = (name: Name) => string | undefined

const noAttributes: Record<string, unknown> = Object.freeze({})
const noLinks: Links = new Map()

/** Compares every key that the write touches with what stands, and keeps the differences. */
export function decideAttributes(
  standing: CurrentState | null,
  plan: Plan,
  bearer: Bearer,
  definitions: Definitions,
  entityBytes: number,
): AttributeChange {
  const attributes = standing?.row.attributes ?? noAttributes
  const linked = linkedByKey(standing?.links ?? noLinks, definitions)
  const change = emptyChange(standing)
  for (const [key, value] of plan.plain) writePlain(change, key, value, attributes, linked.get(key))
  for (const [key, planned] of plan.links) writeLinks(change, key, planned, attributes, linked.get(key), bearer)
  if (plan.clearsRest) {
    const untouched = (key: string) => !plan.plain.has(key) && !plan.links.has(key)
    for (const key of new Set([...Object.keys(attributes), ...linked.keys()]))
      if (untouched(key)) writePlain(change, key, null, attributes, linked.get(key))
  }
  change.changed = Object.keys(change.after).length > 0
  if (change.changed) measure(change, attributes, linked, entityBytes)
  return change
}

function emptyChange(standing: CurrentState | null): AttributeChange {
  return {
    changed: false,
    set: {},
    removed: [],
    relinked: [],
    missing: [],
    before: standing && {},
    after: {},
    keyCount: 0,
    isTooLarge: false,
  }
}

type LinkedKey = { attribute: Attribute; targets: readonly Target[] }[]

const nothingLinked: ReadonlyMap<string, LinkedKey> = new Map()

function linkedByKey(links: Links, definitions: Definitions): ReadonlyMap<string, LinkedKey> {
  if (links.size === 0) return nothingLinked
  const linked = new Map<string, LinkedKey>()
  for (const [attribute_id, targets] of links) {
    const attribute = definitions.attributeById.get(attribute_id)
    if (attribute) linked.set(attribute.key, [...(linked.get(attribute.key) ?? []), { attribute, targets }])
  }
  return linked
}

/** What a read shows under a key now. */
function shown(key: string, attributes: Record<string, unknown>, linked: LinkedKey | undefined): unknown {
  const last = linked?.at(-1)
  if (last) return shownLinks(last.attribute.cardinality, last.targets)
  return Object.hasOwn(attributes, key) ? attributes[key] : null
}

function writePlain(
  change: AttributeChange,
  key: string,
  value: unknown,
  attributes: Record<string, unknown>,
  linked: LinkedKey | undefined,
) {
  const stored = Object.hasOwn(attributes, key)
  if (!linked && (value === null ? !stored : stored && jsonEqual(attributes[key], value))) return
  record(change, key, shown(key, attributes, linked), value)
  for (const { attribute } of linked ?? []) change.relinked.push({ attribute, targets: [] })
  if (value !== null) define(change.set, key, value)
  else if (stored) change.removed.push(key)
}

function writeLinks(
  change: AttributeChange,
  key: string,
  { attribute, names, places }: PlannedLinks,
  attributes: Record<string, unknown>,
  linked: LinkedKey | undefined,
  bearer: Bearer,
) {
  const targets = names.map((name): PlannedTarget => {
    const id = bearer(name)
    return id === undefined ? { name } : { id }
  })
  const stored = Object.hasOwn(attributes, key)
  if (!stored && sameLinks(attribute, targets, linked)) return
  record(
    change,
    key,
    shown(key, attributes, linked),
    names.length > 0 ? shownLinks(attribute.cardinality, names) : null,
  )
  if (stored) change.removed.push(key)
  for (const other of linked ?? [])
    if (other.attribute.id !== attribute.id) change.relinked.push({ attribute: other.attribute, targets: [] })
  change.relinked.push({ attribute, targets })
  for (const [index, target] of targets.entries())
    if ('name' in target) change.missing.push({ name: target.name, pointer: places[index]! })
}

function sameLinks(attribute: Attribute, targets: PlannedTarget[], linked: LinkedKey | undefined): boolean {
  if (!linked) return targets.length === 0
  const [only, ...others] = linked
  if (others.length > 0 || only?.attribute.id !== attribute.id || only.targets.length !== targets.length) return false
  return targets.every((target, index) => 'id' in target && target.id === only.targets[index]?.id)
}

function record(change: AttributeChange, key: string, before: unknown, after: unknown) {
  if (change.before) define(change.before, key, before)
  define(change.after, key, after)
}

/** Sets a key that a client chose: never through a setter of the prototype. */
function define(target: Record<string, unknown>, key: string, value: unknown) {
  if (key in target) Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  else target[key] = value
}

/** Counts what the entity will hold: its plain values and its linked keys. */
function measure(
  change: AttributeChange,
  attributes: Record<string, unknown>,
  linked: ReadonlyMap<string, LinkedKey>,
  entityBytes: number,
) {
  let [bytes, bytesAtMost] = [2, 2]
  eachValue(change, attributes, linked, (key, value) => {
    change.keyCount += 1
    bytesAtMost += mostBytesOf(key) + mostBytesOf(value)
  })
  // Hardly any entity comes near the limit: of one in its thousands, a JSON text of every value was made for nothing.
  if (bytesAtMost <= entityBytes) return
  eachValue(change, attributes, linked, (key, value) => {
    bytes += Buffer.byteLength(key) + 4 + Buffer.byteLength(JSON.stringify(value)) + bytesOfZeros(value)
  })
  change.isTooLarge = bytes > entityBytes
}

/** The values of the entity after the write. */
function eachValue(
  { after }: AttributeChange,
  attributes: Record<string, unknown>,
  linked: ReadonlyMap<string, LinkedKey>,
  visit: (key: string, value: unknown) => void,
) {
  for (const key in after) if (after[key] !== null) visit(key, after[key])
  for (const [key, stored] of linked) {
    const value = shown(key, attributes, stored)
    if (value !== null && !Object.hasOwn(after, key)) visit(key, value)
  }
  for (const key in attributes)
    if (attributes[key] !== null && !Object.hasOwn(after, key) && !linked.has(key)) visit(key, attributes[key])
}

/** No fewer bytes than the JSON of a value has beside its neighbours: a character has at most six, as `\u001f`, a number 25 or zeros more. */
function mostBytesOf(value: unknown): number {
  if (typeof value === 'string') return 6 * value.length + 4
  if (typeof value === 'number') return 32 + bytesOfZeros(value)
  if (typeof value !== 'object' || value === null) return 32
  let bytes = 4
  if (Array.isArray(value)) for (const element of value) bytes += mostBytesOf(element)
  else for (const key in value) bytes += mostBytesOf(key) + mostBytesOf((value as Record<string, unknown>)[key])
  return bytes
}

/**
 * PostgreSQL shows a small number with all its zeros: `1e-300` takes 302 bytes of an answer, so that 420 kB that were sent were read as
 * 18 MB. Large ones, which are integers that no double holds exactly, are refused before.
 */
function bytesOfZeros(value: unknown): number {
  if (typeof value === 'number')
    return value !== 0 && Math.abs(value) < 1e-6 ? Number(/e-(\d+)$/.exec(`${value}`)![1]) : 0
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((bytes, inner) => bytes + bytesOfZeros(inner), 0)
}
