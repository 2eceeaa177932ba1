import { type GivenEdit, givenEdit, ListEdit, readListEdit } from '../../attributes/list-edit.ts'
import type { PatternTime } from '../../attributes/pattern.ts'
import {
  looksInternal,
  normalizeEdit,
  normalizeRelationship,
  type TargetKind,
} from '../../attributes/relationships/normalize.ts'
import { isPresent, ruleFault } from '../../attributes/rules.ts'
import { coerceValue, valueFault } from '../../attributes/values.ts'
import {
  type Attribute,
  type Definitions,
  type IndexedAttribute,
  isRelationship,
  peopleStackId,
} from '../../organizations/definitions.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import { type Detail, pointer } from '../../values/errors.ts'
import { uuidOfRecord } from '../../values/formats.ts'
import { mobileKey } from '../../values/phone-numbers.ts'
import { emailKey } from '../match-keys.ts'
import type { EntityBody, MatchKind, Write } from '../write-request.ts'
import { type Claim, claimOf } from './unique.ts'

/** The name of an entity, existing or not: its stack and external identifier. */
export type Name = { stack_id: number; external_id: string }

/** An entity that a write links to: its name, or its stack and internal identifier, as stored. */
export type Reference = Name | { stack_id: number; id: string }

/** The entities that an attribute will link to, and the JSON Pointer of each in the request. */
export type PlannedLinks = {
  attribute: Attribute
  references: Reference[]
  pointers: string[]
  /** Present if the write changes single links: it keeps the stored links except `removed`, and adds `references`. */
  edit?: LinkEdit
}

/**
 * The entities whose links a write removes, the JSON Pointer of each, and the maximum number of links after the write.
 */
export type LinkEdit = { removed: Reference[]; pointers: string[]; maxLinks: number }

/**
 * The attribute part of a write, after the definitions are applied: keys with plain values (null clears), keys with
 * links, and faults. The plan does not depend on the stored state.
 */
export type Plan = {
  /** A {@link ListEdit} changes single elements of the list that is stored. */
  plain: Map<string, unknown>
  links: ReadonlyMap<string, PlannedLinks>
  /** Whether the write clears the keys that it omits: PUT, and `attribute_values: null`. */
  clearsRest: boolean
  faults: Detail[]
  /**
   * Faults of the required keys that the write does not mention. They apply if the write leaves such a key without a
   * value.
   */
  required?: readonly Detail[] | undefined
  /** The values of unique attributes that the write sets. Absent if there are none. */
  claims?: readonly Claim[]
}

/** The name as a map key. External identifiers never contain a line feed, so the key is unique. */
export const nameKey = ({ stack_id, external_id }: Name): string => `${stack_id}\n${external_id}`

/** The reference as a map key. That of a name is its {@link nameKey}. */
export const referenceKey = (reference: Reference): string =>
  'id' in reference ? `${reference.stack_id}\n\n${reference.id}` : nameKey(reference)

/** The entity that has the name as its internal identifier. Undefined if the name does not look like one. */
export function lookalikeOf(reference: Reference): Reference | undefined {
  if ('id' in reference) return undefined
  const { stack_id, external_id } = reference
  const kind = targetKindOf(stack_id)
  return looksInternal(external_id, kind) ? { stack_id, id: storedId(stack_id, external_id) } : undefined
}

const targetKindOf = (stack_id: number): TargetKind => (stack_id === peopleStackId ? 'person' : 'record')

const storedId = (stack_id: number, id: string) => (stack_id === peopleStackId ? id.toLowerCase() : uuidOfRecord(id))

/** A write and its position in the array. */
export type IndexedWrite = { index: number; write: Write }

export const indexed = (writes: readonly Write[]): IndexedWrite[] => writes.map((write, index) => ({ index, write }))

/** One planned write. `key` is the {@link referenceKey} of its address, if it has one. */
export type Item = IndexedWrite & {
  plan: Plan
  key: string | undefined
  /** How the write recognizes its person, if it has a `match`. */
  match?: MatchPlan | undefined
}

/** The time that each request has spent on patterns, by request id. */
export type PatternTimes = Map<string, PatternTime>

/**
 * Plans writes. Many writes take several turns of the event loop. `linksLimit` is the maximum number of links of one
 * attribute.
 */
export async function planItems(
  writes: readonly IndexedWrite[],
  definitions: Definitions,
  linksLimit: number,
  times: PatternTimes = new Map(),
): Promise<Item[]> {
  const items: Item[] = []
  for (const { write, index } of writes) {
    const turn = items.length > 0 ? yieldIfDue() : undefined
    if (turn) await turn
    const plan = planWrite(write, definitions, linksLimit, times)
    const match = write.match && planMatch(write.match, write.body, definitions.default_country)
    items.push({ write, index, plan, key: addressKey(write), match })
  }
  return items
}

/** Builds the plan of a write. */
export function planWrite(
  write: Write,
  definitions: Definitions,
  linksLimit: number,
  times: PatternTimes = new Map(),
): Plan {
  const plan: Plan = { plain: new Map(), links: noLinks, clearsRest: clearsRest(write), faults: [] }
  let links: Map<string, PlannedLinks> | undefined
  const declared = definitions.declared.get(write.stack_id)
  const values = write.body.attribute_values
  for (const key in values) {
    const [value, attribute] = [values[key], declared?.get(key)]
    const given = givenEdit(value, attribute, write.lists === 'add')
    const message = given && !given.isWhole && editMessage(write, attribute)
    if (message) plan.faults.push({ path: pointer('attribute_values', key), message })
    else if (attribute && isRelationship(attribute)) {
      links ??= new Map()
      const planned = given ? planEdit(attribute, given, linksLimit) : planLinks(attribute, value, linksLimit)
      if ('fault' in planned) plan.faults.push(planned.fault)
      else links.set(key, planned)
    } else if (attribute && given) planList(plan, attribute, given, write, times)
    else planPlain(plan, key, attribute, value, write, times)
  }
  if (links) plan.links = links
  const required = definitions.required.get(write.stack_id)
  if (required && write.operation !== 'delete' && write.operation !== 'restore') planRequired(plan, required, write)
  const unique = definitions.unique.get(write.stack_id)
  if (unique) planUnique(plan, unique)
  return plan
}

/**
 * Adds a fault for each required key that is written without a value. The stored state decides about the keys that are
 * not written.
 */
function planRequired(plan: Plan, attributes: readonly Attribute[], { body: { attribute_values } }: Write) {
  const unmentioned: Detail[] = []
  for (const { key } of attributes) {
    const fault = { path: pointer('attribute_values', key), message: 'is required' }
    const links = plan.links.get(key)
    if (plan.plain.has(key) ? !isPresent(plan.plain.get(key)) : links?.references.length === 0 && !links.edit)
      plan.faults.push(fault)
    else if (!attribute_values || !Object.hasOwn(attribute_values, key)) unmentioned.push(fault)
  }
  if (unmentioned.length > 0) plan.required = unmentioned
}

function planUnique(plan: Plan, attributes: readonly IndexedAttribute[]) {
  const claims = attributes.flatMap(attribute => claimOf(attribute, plan.plain.get(attribute.key)) ?? [])
  if (claims.length > 0) plan.claims = claims
}

// Most writes have no links and share this empty map.
const noLinks: Plan['links'] = new Map()

function clearsRest({ operation, body }: Write): boolean {
  return operation === 'put' || (operation !== 'create' && body.attribute_values === null)
}

type Relationship = Attribute & { target_stack_id: number }

function planLinks(attribute: Relationship, value: unknown, maxLinks: number): PlannedLinks | { fault: Detail } {
  const { cardinality, target_stack_id } = attribute
  const normalized = normalizeRelationship(value, { cardinality, maxLinks, kind: targetKindOf(target_stack_id) })
  if ('fault' in normalized) return faultOf(attribute, normalized.fault)
  return {
    attribute,
    references: normalized.references.map(reference => targetOf(attribute, reference)),
    pointers: normalized.paths.map(path => pointer('attribute_values', attribute.key, ...path)),
  }
}

function planEdit(
  attribute: Relationship,
  { edit, isWhole }: GivenEdit,
  maxLinks: number,
): PlannedLinks | { fault: Detail } {
  const { cardinality, target_stack_id } = attribute
  const normalized = normalizeEdit(edit, { cardinality, maxLinks, kind: targetKindOf(target_stack_id) })
  if ('fault' in normalized) {
    const { path, message } = normalized.fault
    return faultOf(attribute, { path: pathOf(path, isWhole), message })
  }
  const { added, removed } = normalized
  const pointers = (paths: typeof added.paths) =>
    paths.map(path => pointer('attribute_values', attribute.key, ...pathOf(path, isWhole)))
  return {
    attribute,
    references: added.references.map(reference => targetOf(attribute, reference)),
    pointers: pointers(added.paths),
    edit: {
      removed: removed.references.map(reference => targetOf(attribute, reference)),
      pointers: pointers(removed.paths),
      maxLinks,
    },
  }
}

/** The path of a fault in a value. The path in a whole list has no `$add`. */
const pathOf = (path: (string | number)[], isWhole: boolean) => (isWhole ? path.slice(1) : path)

/** The reason why a write does not accept `$add` and `$remove` for a key. Undefined if it does. */
function editMessage({ operation }: Write, attribute: Attribute | undefined): string | undefined {
  if (!attribute)
    return 'changes the elements of a list, and no attribute of this key is declared. Declare one with cardinality many, or send the whole value'
  if (attribute.cardinality === 'one' && !isRelationship(attribute))
    return 'changes the elements of a list, and the attribute holds one value. Send the whole value'
  if (operation === 'patch' || operation === 'upsert') return undefined
  return 'is for PATCH and upsert, which keep the other elements. Send the whole list, or use one of these'
}

function planList(
  plan: Plan,
  attribute: Attribute,
  { edit, isWhole }: GivenEdit,
  { boundFrom, request_id }: Write,
  times: PatternTimes,
) {
  const { key } = attribute
  const read = readListEdit(attribute, edit, { isText: boundFrom === 'query', time: () => timeOf(request_id, times) })
  if (read instanceof ListEdit) {
    plan.plain.set(key, read)
    return
  }
  const { path, message } = read.fault
  plan.faults.push({ path: pointer('attribute_values', key, ...pathOf(path, isWhole)), message })
}

const faultOf = ({ key }: Attribute, { path, message }: { path: (string | number)[]; message: string }) => ({
  fault: { path: pointer('attribute_values', key, ...path), message },
})

const targetOf = ({ target_stack_id }: Relationship, reference: { external_id: string } | { id: string }): Reference =>
  'id' in reference
    ? { stack_id: target_stack_id, id: storedId(target_stack_id, reference.id) }
    : { stack_id: target_stack_id, ...reference }

function planPlain(
  plan: Plan,
  key: string,
  attribute: Attribute | undefined,
  value: unknown,
  write: Write,
  times: PatternTimes,
) {
  const { boundFrom, request_id } = write
  const typed = attribute && boundFrom === 'query' ? coerceValue(attribute, value) : value
  const fault =
    attribute && typed !== null
      ? (valueFault(attribute, typed) ?? ruleFault(attribute, typed, () => timeOf(request_id, times)))
      : undefined
  if (fault) plan.faults.push({ path: pointer('attribute_values', key, ...fault.path), message: fault.message })
  else plan.plain.set(key, typed)
}

function timeOf(request_id: string, times: PatternTimes): PatternTime {
  const time = times.get(request_id) ?? { spentMs: 0 }
  times.set(request_id, time)
  return time
}

/**
 * Returns the ids of the relationship attributes whose stored links the decision needs: those of the written keys, or
 * all if the write clears the rest.
 */
export function requiredLinkAttributes(write: Write, plan: Plan, definitions: Definitions): readonly number[] {
  const relationships = definitions.relationships.get(write.stack_id)
  if (!relationships) return noAttributes
  const all = plan.clearsRest || write.operation === 'delete' || isRetry(write, definitions)
  const required: number[] = []
  for (const keys of all ? [relationships] : [plan.links, plan.plain])
    for (const key of keys.keys()) for (const { id } of relationships.get(key) ?? []) required.push(id)
  return required
}

const noAttributes: readonly number[] = []

/** Whether a creation may be the retry of a stored event. It is then compared with all stored fields. */
export function isRetry({ operation, stack_id }: Write, { stacks }: Definitions): boolean {
  if (operation !== 'create' && operation !== 'import') return false
  return stacks.some(stack => stack.id === stack_id && stack.kind === 'event')
}

/** The name that a write is addressed by; undefined if it is addressed by id or has no address. */
export function addressedName({ address, stack_id }: Write): Name | undefined {
  return address && 'external_id' in address ? { stack_id, external_id: address.external_id } : undefined
}

/** The {@link referenceKey} of the entity that a write is addressed to. Undefined if it has no address. */
export function addressKey({ address, stack_id }: Write): string | undefined {
  if (!address) return undefined
  return 'id' in address ? `${stack_id}\n\n${address.id}` : `${stack_id}\n${address.external_id}`
}

/** The new name of a rename. Undefined for a create, because its external identifier is its address. */
export function newNameOf({ operation, stack_id, address, body }: Write): Name | undefined {
  if (operation === 'create' || !body.external_id) return undefined
  if (address && 'external_id' in address && address.external_id === body.external_id) return undefined
  return { stack_id, external_id: body.external_id }
}

/** Whether the write releases the current name of its entity. */
export const releasesName = (write: Write): boolean =>
  write.operation === 'delete' || write.body.external_id === null || newNameOf(write) !== undefined

/** The entities that the decision needs: the link targets, and the entity that has the new name or the new alias. */
export function requiredReferences(write: Write, plan: Plan): Reference[] {
  const newName = newNameOf(write) ?? aliasOf(write)
  if (plan.links.size === 0) return newName ? [newName] : noReferences
  const references = [...plan.links.values()].flatMap(({ references, edit }) =>
    edit ? [...references, ...edit.removed] : references,
  )
  for (const reference of [...references]) {
    const lookalike = lookalikeOf(reference)
    if (lookalike) references.push(lookalike)
  }
  if (newName) references.push(newName)
  return references
}

/** The alias that a write gives to the recognized person. */
export const aliasOf = ({ stack_id, alias }: Write): Name | undefined =>
  alias === undefined ? undefined : { stack_id, external_id: alias }

const noReferences: Reference[] = []

type KindKey = { kind: MatchKind; key: string }

/**
 * The values by which a write recognizes its person, in the order in which they are tried, and the other addresses of
 * its body. A merge may lead any of them to the person.
 */
export type MatchPlan = { tried: readonly KindKey[]; others: readonly KindKey[] }

/**
 * Plans the recognition of a write's person. A kind is skipped if the body lacks its value or if its phone is invalid.
 */
function planMatch(match: readonly MatchKind[], body: EntityBody, country: string | null): MatchPlan {
  const keysOf = (kinds: readonly MatchKind[]) =>
    kinds.flatMap((kind): KindKey[] => {
      const key = keyOf(kind, body, country)
      return key ? [{ kind, key }] : []
    })
  const others = (['email', 'mobile'] as const).filter(kind => !match.includes(kind))
  return { tried: keysOf(match), others: keysOf(others) }
}

function keyOf(kind: MatchKind, body: EntityBody, country: string | null): string | null | undefined {
  if (kind === 'external_id') return body.external_id
  return kind === 'email' ? emailKey(body.email) : mobileKey(body.mobile_prefix, body.mobile_number, country)
}
