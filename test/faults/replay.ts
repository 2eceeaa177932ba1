import { isDeepStrictEqual } from 'node:util'
import type { Change, Stored } from './stored.ts'

/** An entity as the change log tells it. */
export type Told = {
  stack_id: number
  id: string
  external_id: string | null
  state: unknown
  version: number
  columns: Record<string, unknown>
  plain: Record<string, unknown>
  /** The names that each relationship was last written with. */
  linked: Map<string, string[]>
}

export type Replayed = {
  live: Map<string, Told>
  gone: Set<string>
  /** Every name that an entity has ever borne, with its stack. */
  borne: Map<string, Set<string>>
  /** The version at which each name was left. */
  left: Map<string, number>
  findings: Finding[]
}

export type FindingKind =
  | 'a write is lost'
  | 'a write comes from nowhere'
  | 'a refused write was done'
  | 'a write was done twice'
  | 'half of a batch was done'
  | 'later writes come before earlier ones'
  | 'two entities have one name'
  | 'a version skips'
  | 'the change log has a gap'
  | 'the change log does not replay'
  | 'a placeholder has no cause'
  | 'what is stored is not what the change log tells'
  | 'the consent history does not replay'
  | 'a link leads to nothing'
  | 'links are not what the change log tells'
  | 'an index is not what is stored'
  | 'a read is not what is stored'
  | 'an answer that no fault explains'

export type Finding = { kind: FindingKind; text: string }

export const nameKey = (stack_id: number, external_id: string): string => `${stack_id} ${external_id}`

/** Keys of attribute values that are relationships, by the stack that owns them. */
export function relationshipsOf({ attributes }: Stored): Set<string> {
  const relationships = attributes.filter(({ target_stack_id }) => target_stack_id !== null)
  return new Set(relationships.map(({ owner_stack_id, key }) => `${owner_stack_id} ${key}`))
}

/** Tells the whole change log again, and notes where a change does not follow from those before it. */
export function replay(stored: Stored): Replayed {
  const relationships = relationshipsOf(stored)
  const replayed: Replayed = { live: new Map(), gone: new Set(), borne: new Map(), left: new Map(), findings: [] }
  const names = new Map<string, string>()
  for (const [index, change] of stored.changes.entries()) {
    if (change.sequence !== index + 1)
      replayed.findings.push({ kind: 'the change log has a gap', text: `${change.sequence} at place ${index + 1}` })
    if (change.subject === 'entity') tell(replayed, names, relationships, change)
  }
  const last = stored.changes.length
  if (stored.head !== last)
    replayed.findings.push({
      kind: 'the change log has a gap',
      text: `the head is at ${stored.head}, the log at ${last}`,
    })
  return replayed
}

function tell(replayed: Replayed, names: Map<string, string>, relationships: Set<string>, change: Change) {
  const { live, gone, findings } = replayed
  const { entity_id, operation, stack_id, version } = change
  const find = (kind: FindingKind, text: string) =>
    findings.push({ kind, text: `${text}: change ${change.sequence}, ${operation} of ${entity_id}` })
  const known = live.get(entity_id)
  if ((operation === 'create') !== (known === undefined) || gone.has(entity_id))
    return find('the change log does not replay', known ? 'is there already' : 'is not there')
  const told = known ?? nobody(change)
  const before = known ? known.version : versionBefore(replayed, change)
  if (version !== before + 1) find('a version skips', `${version} follows ${before}`)
  const difference = differenceBefore(told, change, relationships)
  if (difference) find('the change log does not replay', difference)
  if (told.external_id !== null && (operation === 'delete' || 'external_id' in change.after)) {
    const name = nameKey(stack_id, told.external_id)
    names.delete(name)
    replayed.left.set(name, Math.max(version, replayed.left.get(name) ?? 0))
  }
  if (operation === 'delete') {
    live.delete(entity_id)
    gone.add(entity_id)
    return
  }
  apply(told, change, relationships)
  live.set(entity_id, told)
  if (told.external_id === null) return
  const name = nameKey(stack_id, told.external_id)
  const bearer = names.get(name)
  if (bearer !== undefined && bearer !== entity_id) find('two entities have one name', told.external_id)
  names.set(name, entity_id)
  replayed.borne.set(entity_id, (replayed.borne.get(entity_id) ?? new Set()).add(name))
}

/** A new entity goes on from the version at which its name was left. */
function versionBefore({ left }: Replayed, { stack_id, after }: Change): number {
  return (typeof after.external_id === 'string' && left.get(nameKey(stack_id, after.external_id))) || 0
}

const nobody = ({ stack_id, entity_id }: Change): Told => ({
  stack_id,
  id: entity_id,
  external_id: null,
  state: null,
  version: 0,
  columns: {},
  plain: {},
  linked: new Map(),
})

/** Where `before` is not what the changes before have told. A relationship's names may have changed meanwhile. */
function differenceBefore(told: Told, { stack_id, before, operation }: Change, relationships: Set<string>) {
  if (before === null && operation !== 'create') return 'what stood before is not told'
  for (const [key, value] of Object.entries(before ?? {})) {
    if (key === 'attribute_values') {
      for (const [name, was] of Object.entries(value as Record<string, unknown>))
        if (!relationships.has(`${stack_id} ${name}`) && !isDeepStrictEqual(was, told.plain[name] ?? null))
          return `${name} was ${JSON.stringify(told.plain[name])}, not ${JSON.stringify(was)}`
    } else if (key === 'external_id' || key === 'state') {
      if (value !== told[key]) return `${key} was ${told[key]}, not ${value}`
    } else if (key !== 'consents' && key !== 'version' && !isDeepStrictEqual(value, told.columns[key] ?? null))
      return `${key} was ${told.columns[key]}, not ${value}`
  }
  const kept = Object.keys((before?.attribute_values ?? {}) as object)
  if (operation === 'delete' && Object.keys(told.plain).some(key => !kept.includes(key)))
    return 'not all that was deleted is told'
  return undefined
}

function apply(told: Told, { stack_id, after, version }: Change, relationships: Set<string>) {
  told.version = version
  for (const [key, value] of Object.entries(after)) {
    if (key === 'external_id' || key === 'state') told[key] = value as string | null
    else if (key === 'attribute_values')
      applyAttributes(told, stack_id, value as Record<string, unknown>, relationships)
    else if (key !== 'consents' && key !== 'version') told.columns[key] = value
  }
}

function applyAttributes(told: Told, stack_id: number, values: Record<string, unknown>, relationships: Set<string>) {
  for (const [key, value] of Object.entries(values)) {
    if (relationships.has(`${stack_id} ${key}`))
      told.linked.set(key, value === null ? [] : ([value].flat() as string[]))
    else if (value === null) delete told.plain[key]
    else told.plain[key] = value
  }
}
