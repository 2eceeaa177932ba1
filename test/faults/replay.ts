import { isDeepStrictEqual } from 'node:util'
import type { Change, Stored } from './stored.ts'

/** An entity as replayed from the change log. */
export type ReplayedEntity = {
  stack_id: number
  id: string
  external_id: string | null
  state: unknown
  version: number
  columns: Record<string, unknown>
  plainValues: Record<string, unknown>
  /** The ids of the targets that each relationship was last written with, by attribute id. */
  linkedIds: Map<string, string[]>
}

export type Replayed = {
  live: Map<string, ReplayedEntity>
  /** The version of the last deletion of each entity that was ever deleted. A restored one is live, too. */
  deleted: Map<string, number>
  /** The version of an entity when it gave up its name, by name. */
  releasedVersions: Map<string, number>
  findings: Finding[]
}

export type FindingKind =
  | 'a write is lost'
  | 'an unrequested write was done'
  | 'a refused write was done'
  | 'a write was done twice'
  | 'an atomic batch was done in part'
  | 'change numbers are out of order'
  | 'two entities have one name'
  | 'a version is skipped'
  | 'the change log has a gap'
  | 'the change log does not replay'
  | 'a placeholder has no cause'
  | 'stored entities differ from the change log'
  | 'the consent history does not replay'
  | 'a link is dangling'
  | 'stored links differ from the change log'
  | 'the index differs from the stored entities'
  | 'a read differs from the stored entities'
  | 'an unexplained response'
  | 'a change was not delivered'
  | 'an unrequested change was delivered'
  | 'a delivery differs from the change log'
  | 'deliveries are out of order'

export type Finding = { kind: FindingKind; text: string }

export const nameKey = (stack_id: number, external_id: string): string => `${stack_id} ${external_id}`

/** Replays the whole change log. Records a finding for each change that does not follow from those before it. */
export function replay(stored: Stored): Replayed {
  const replayed: Replayed = {
    live: new Map(),
    deleted: new Map(),
    releasedVersions: new Map(),
    findings: [],
  }
  const names = new Map<string, string>()
  for (const [index, change] of stored.changes.entries()) {
    if (change.sequence !== index + 1)
      replayed.findings.push({ kind: 'the change log has a gap', text: `${change.sequence} at position ${index + 1}` })
    if (change.subject === 'entity') applyChange(replayed, names, change)
  }
  const last = stored.changes.length
  if (stored.head !== last)
    replayed.findings.push({
      kind: 'the change log has a gap',
      text: `the head is at ${stored.head}, the log at ${last}`,
    })
  return replayed
}

function applyChange(replayed: Replayed, names: Map<string, string>, change: Change) {
  const { live, deleted, findings } = replayed
  const { entity_id, operation, stack_id, version } = change
  const addFinding = (kind: FindingKind, text: string) =>
    findings.push({ kind, text: `${text}: change ${change.sequence}, ${operation} of ${entity_id}` })
  const existing = live.get(entity_id)
  const isStart = operation === 'create' || operation === 'restore'
  if (isStart !== (existing === undefined))
    return addFinding('the change log does not replay', existing ? 'exists already' : 'does not exist')
  if (isStart && deleted.has(entity_id) !== (operation === 'restore'))
    return addFinding('the change log does not replay', deleted.has(entity_id) ? 'was deleted' : 'was never deleted')
  const entity = existing ?? blankEntity(change)
  const before = Math.max(existing?.version ?? 0, versionBefore(replayed, change))
  if (version !== before + 1) addFinding('a version is skipped', `${version} follows ${before}`)
  const difference = differenceBefore(entity, change, live)
  if (difference) addFinding('the change log does not replay', difference)
  if (entity.external_id !== null && (operation === 'delete' || 'external_id' in change.after)) {
    const name = nameKey(stack_id, entity.external_id)
    names.delete(name)
    replayed.releasedVersions.set(name, Math.max(version, replayed.releasedVersions.get(name) ?? 0))
  }
  if (operation === 'delete') {
    live.delete(entity_id)
    deleted.set(entity_id, version)
    return
  }
  applyFields(entity, change)
  live.set(entity_id, entity)
  if (entity.external_id === null) return
  const name = nameKey(stack_id, entity.external_id)
  const holder = names.get(name)
  if (holder !== undefined && holder !== entity_id) addFinding('two entities have one name', entity.external_id)
  names.set(name, entity_id)
}

/**
 * Returns the version that an entity continues from when it takes a name or comes back: the one at which its name was last released or
 * it was deleted, or 0.
 */
function versionBefore({ releasedVersions, deleted }: Replayed, { stack_id, entity_id, after }: Change): number {
  const released = typeof after.external_id === 'string' && releasedVersions.get(nameKey(stack_id, after.external_id))
  return Math.max(released || 0, deleted.get(entity_id) ?? 0)
}

const blankEntity = ({ stack_id, entity_id }: Change): ReplayedEntity => ({
  stack_id,
  id: entity_id,
  external_id: null,
  state: null,
  version: 0,
  columns: {},
  plainValues: {},
  linkedIds: new Map(),
})

/** Returns how the values and links before a change differ from the replayed entity. */
function differenceBefore(entity: ReplayedEntity, { before, links, operation }: Change, live: Replayed['live']) {
  for (const [attribute_id, { before: ids = [] }] of Object.entries(links ?? {})) {
    const expected = (entity.linkedIds.get(attribute_id) ?? []).filter(id => live.has(id))
    if (!isDeepStrictEqual(ids, expected)) return `attribute ${attribute_id} linked to ${expected}, not to ${ids}`
  }
  if (before === null && operation !== 'create' && operation !== 'restore') return 'the previous values are missing'
  for (const [key, value] of Object.entries(before ?? {})) {
    if (key === 'attribute_values') {
      for (const [name, previous] of Object.entries(value as Record<string, unknown>))
        if (!isDeepStrictEqual(previous, entity.plainValues[name] ?? null))
          return `${name} was ${JSON.stringify(entity.plainValues[name])}, not ${JSON.stringify(previous)}`
    } else if (key === 'external_id' || key === 'state') {
      if (value !== entity[key]) return `${key} was ${entity[key]}, not ${value}`
    } else if (key !== 'consents' && key !== 'version' && !isDeepStrictEqual(value, entity.columns[key] ?? null))
      return `${key} was ${entity.columns[key]}, not ${value}`
  }
  const deletedKeys = Object.keys((before?.attribute_values ?? {}) as object)
  if (operation === 'delete' && Object.keys(entity.plainValues).some(key => !deletedKeys.includes(key)))
    return 'the deletion lacks some of the deleted values'
  return undefined
}

function applyFields(entity: ReplayedEntity, { after, links, version }: Change) {
  entity.version = version
  for (const [attribute_id, { after: ids = [] }] of Object.entries(links ?? {})) entity.linkedIds.set(attribute_id, ids)
  for (const [key, value] of Object.entries(after)) {
    if (key === 'external_id' || key === 'state') entity[key] = value as string | null
    else if (key === 'attribute_values') applyAttributes(entity, value as Record<string, unknown>)
    else if (key !== 'consents' && key !== 'version') entity.columns[key] = value
  }
}

function applyAttributes(entity: ReplayedEntity, values: Record<string, unknown>) {
  for (const [key, value] of Object.entries(values)) {
    if (value === null) delete entity.plainValues[key]
    else entity.plainValues[key] = value
  }
}
