import { type Database, rootOf } from '../db/db.ts'
import type { Signal } from '../signal.ts'
import { readDefinitionsSql, readSchemaVersionSql } from './definitions-sql.ts'

/** The stack id of people in every table; stacks of records count from 1. */
export const peopleStackId = 0
/** The owner key that means people where a stack key could stand. */
export const peopleKey = 'people'

export type Channel = 'email' | 'sms'
export const channels = ['email', 'sms'] as const satisfies Channel[]

export type Stack = {
  id: number
  key: string
  name: string
  kind: 'item' | 'event'
  created_at: string
  updated_at: string
}

export type AttributeType = 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'json' | 'person' | 'stack'

/** `id` is new each time an index is asked for. Until it is ready, `indexed` of about `total` entities are in it. */
export type AttributeIndex = { id: number; ready: boolean; indexed: number; total: number }

export type Attribute = {
  id: number
  owner_stack_id: number
  key: string
  name: string
  description: string | null
  type: AttributeType
  /** Null unless `type` is `person` (then {@link peopleStackId}) or `stack`. */
  target_stack_id: number | null
  cardinality: 'one' | 'many'
  indexed: boolean
  /** The index kept of its values: of indexed ones and of relationships, while active. */
  index?: AttributeIndex | null
  state: 'active' | 'archived'
  created_at: string
  updated_at: string
}

export type ConsentType = {
  id: number
  key: string
  name: string
  description: string | null
  state: 'active' | 'archived'
  mandatory: boolean
  default_state: boolean
  channels: { channel: Channel; is_default: boolean }[]
  created_at: string
  updated_at: string
}

/** An organization's stacks, attributes and consent types at one version: what writes are validated against. */
export type Definitions = Readonly<{
  organization_id: number
  version: number
  stacks: readonly Stack[]
  attributes: readonly Attribute[]
  consent_types: readonly ConsentType[]
  attributeById: ReadonlyMap<number, Attribute>
  /** Active attributes of an owner, by key. */
  declared: ReadonlyMap<number, ReadonlyMap<string, Attribute>>
  /** Relationship attributes of an owner by key, archived ones too: their links stay readable until the key is written. */
  relationships: ReadonlyMap<number, ReadonlyMap<string, readonly Attribute[]>>
}>

export type DefinitionRows = {
  version: number
  stacks: Stack[]
  attributes: Attribute[]
  consent_types: ConsentType[]
}

export function isRelationship(attribute: Attribute): attribute is Attribute & { target_stack_id: number } {
  return attribute.target_stack_id !== null
}

/** Indexes the rows of one organization for the look-ups of the write path. */
export function buildDefinitions(organization_id: number, rows: DefinitionRows): Definitions {
  const declared = new Map<number, Map<string, Attribute>>()
  const relationships = new Map<number, Map<string, Attribute[]>>()
  for (const attribute of rows.attributes) {
    const { owner_stack_id, key } = attribute
    if (attribute.state === 'active') getOrMake(declared, owner_stack_id, () => new Map()).set(key, attribute)
    if (!isRelationship(attribute)) continue
    const ofOwner = getOrMake(relationships, owner_stack_id, () => new Map<string, Attribute[]>())
    getOrMake(ofOwner, key, () => []).push(attribute)
  }
  const attributeById = new Map(rows.attributes.map(attribute => [attribute.id, attribute]))
  return Object.freeze({ organization_id, ...rows, attributeById, declared, relationships })
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const present = map.get(key)
  if (present !== undefined) return present
  const made = make()
  map.set(key, made)
  return made
}

// One process knows one snapshot per organization and database; versions tell whether it still holds.
const snapshots = new WeakMap<Database, Map<number, Definitions>>()

/**
 * The snapshot in memory, read on first use. It may be older than the database: versions are compared where it matters.
 * Within somebody's transaction theirs will do, but what is read there stays there: it may never be committed.
 */
export async function knownDefinitions(db: Database, organization_id: number, signal?: Signal): Promise<Definitions> {
  const knownTo = (one: Database) => snapshots.get(rootOf(one))?.get(organization_id)
  const known = knownTo(db) ?? (db.outer && knownTo(db.outer))
  db.observer?.cache('definitions', known !== undefined)
  return known ?? reloadDefinitions(db, organization_id, signal)
}

/** The snapshot as of `version` or later: what a row read beside that version is shown with. */
export async function definitionsAt(
  db: Database,
  organization_id: number,
  version: number,
  signal?: Signal,
): Promise<Definitions> {
  const known = await knownDefinitions(db, organization_id, signal)
  return known.version >= version ? known : reloadDefinitions(db, organization_id, signal)
}

/** The snapshot as it stands in the database now, at the price of one small query. */
export async function currentDefinitions(db: Database, organization_id: number, signal?: Signal): Promise<Definitions> {
  const [head] = await db.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id], signal)
  return definitionsAt(db, organization_id, head?.schema_version ?? 0, signal)
}

/** Reads the snapshot from the database and keeps it, unless a newer one came in meanwhile. */
export async function reloadDefinitions(db: Database, organization_id: number, signal?: Signal): Promise<Definitions> {
  const [row] = await db.query<DefinitionRows>(readDefinitionsSql, [organization_id], signal)
  if (!row) throw new Error(`organization ${organization_id} has no head`)
  const read = buildDefinitions(organization_id, row)
  const ofDatabase = snapshots.get(rootOf(db)) ?? new Map<number, Definitions>()
  snapshots.set(rootOf(db), ofDatabase)
  const known = ofDatabase.get(organization_id)
  if (known && known.version > read.version) return known
  ofDatabase.set(organization_id, read)
  return read
}
