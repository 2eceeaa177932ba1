import { type Context, contextOf, perOrganizationData, type Reading } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import type { AttributeRules, AttributeType } from '../values/attribute-rules.ts'
import type { Channel } from '../values/channels.ts'
import { readDefinitionsSql, readSchemaVersionSql } from './definitions-sql.ts'

/** The stack id of people in every table. Ids of record stacks begin at 1. */
export const peopleStackId = 0
/** The owner key of people, used in place of a stack key. */
export const peopleKey = 'people'

/** The scope that reads the entities of a stack. */
export const readScopeOf = (stack_id: number): 'people:read' | 'records:read' =>
  stack_id === peopleStackId ? 'people:read' : 'records:read'

export type Stack = {
  id: number
  key: string
  name: string
  kind: 'item' | 'event'
  /** Records of an event stack are erased this many days after their creation. Null means never. */
  retention_days: number | null
  /** The template of the names of its records (stacks/label.ts). Null means that their identifiers are their names. */
  label: string | null
  /** The summary of a person's records (stacks/stacks.ts). Null means none. */
  summary: StackSummary | null
  /**
   * The key of the relationship to the person with whom a record is erased. If null, records stay unless the erasure
   * requests them.
   */
  erased_with: string | null
  created_at: string
  updated_at: string
}

/** The keys of a stack's attributes: the person of a record, its time, and the numbers to aggregate. */
export type StackSummary = {
  person: string
  time?: string | null
  measures: { op: 'count' | 'sum' | 'avg' | 'min' | 'max'; key?: string }[]
}

/**
 * The index of an attribute. `id` is new each time an index is requested. Until the index is ready, it contains
 * `indexed` of about `total` entities.
 */
export type AttributeIndex = { id: number; ready: boolean; indexed: number; total: number }

/** An absent rule does not apply to the attribute. */
export type Attribute = Partial<AttributeRules> & {
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
  /** Whether a search finds entities by the words of this text. */
  searchable?: boolean
  /** The index of its values. Only an active attribute has one, if it is indexed or a relationship. */
  index?: AttributeIndex | null
  state: 'active' | 'archived'
  created_at: string
  updated_at: string
}

/** The index that sorts the entities of a stack by a field. The first request that sorts by the field creates it. */
export type SortIndex = AttributeIndex & { stack_id: number; field: string }

export type ConsentType = {
  id: number
  key: string
  name: string
  description: string | null
  state: 'active' | 'archived'
  mandatory: boolean
  default_state: boolean
  /** A grant on a channel with `double_opt_in` waits for its confirmation. */
  channels: { channel: Channel; is_default: boolean; double_opt_in: boolean }[]
  /** The number of its texts, whose versions count from 1. */
  text_versions: number
  created_at: string
  updated_at: string
}

/** A named filter on people. */
export type Segment = {
  id: number
  key: string
  name: string
  description: string | null
  /** The filter as written. It was valid at that time, and may name definitions that were archived since. */
  filter: Record<string, unknown>
  /** The time at which the segment got the filter. */
  filter_changed_at: string
  created_at: string
  updated_at: string
}

/**
 * The names of fields of an owner, as in a read: `first_name`, `attribute_values.city`, `attribute_values`, or `*` for
 * all.
 */
export type FieldNames = { read: string[]; write: string[] }

/**
 * The rights of a caller with the role. `fields` is by owner: `people` or the key of a stack. Null means all fields of
 * all owners.
 */
export type Role = {
  id: number
  key: string
  name: string
  scope: string
  fields: Record<string, FieldNames> | null
  state: 'active' | 'archived'
  created_at: string
  updated_at: string
}

/**
 * An organization's stacks, attributes, consent types and segments at one version. Writes are validated against them.
 */
export type Definitions = Readonly<{
  organization_id: number
  version: number
  stacks: readonly Stack[]
  attributes: readonly Attribute[]
  consent_types: readonly ConsentType[]
  segments: readonly Segment[]
  roles: readonly Role[]
  /** The highest id that any segment has ever had. */
  last_segment_id: number
  /**
   * Whether a person may have an additional identifier. The first alias increments the version, so that every process
   * notices it.
   */
  has_aliases: boolean
  /** Whether a person was erased. The first erasure increments the version. */
  has_tombstones: boolean
  /** The IANA time zone that defines the days of relative times. */
  time_zone: string
  /** The country (ISO 3166) of phone numbers without a prefix. If null, such a number is not an address. */
  default_country: string | null
  /** The sort indexes of each stack, by field. */
  sort_indexes: ReadonlyMap<number, ReadonlyMap<string, SortIndex>>
  attributeById: ReadonlyMap<number, Attribute>
  /** The active attributes of each owner, by key. */
  declared: ReadonlyMap<number, ReadonlyMap<string, Attribute>>
  /**
   * The relationship attributes of each owner, by key. Links of archived ones stay readable until the key is written.
   */
  relationships: ReadonlyMap<number, ReadonlyMap<string, readonly Attribute[]>>
  /** The active required attributes of each owner, and the active unique ones. An owner without any is absent. */
  required: ReadonlyMap<number, readonly Attribute[]>
  unique: ReadonlyMap<number, readonly IndexedAttribute[]>
}>

export type IndexedAttribute = Attribute & { index: AttributeIndex }

/** The definitions of an organization, or those that changed since a version. */
export type DefinitionRows = Pick<Definitions, 'version' | 'stacks' | 'attributes' | 'consent_types'> &
  Partial<Pick<Definitions, 'segments' | 'roles' | 'last_segment_id' | 'has_aliases' | 'has_tombstones'>> &
  Partial<Pick<Definitions, 'time_zone' | 'default_country'>> & {
    /** The ids of segments that were deleted since. */
    deleted_segments?: number[]
    sort_indexes?: SortIndex[]
  }

/** The owner of a stack's entities in the form of requests: `people`, or the key of the stack. */
export const ownerOf = ({ stacks }: Pick<Definitions, 'stacks'>, stack_id: number): string =>
  stack_id === peopleStackId ? peopleKey : stacks.find(({ id }) => id === stack_id)!.key

/** The stack of an owner: `people`, or the key of a stack. Undefined for any other text. */
export const stackIdOf = ({ stacks }: Definitions, owner: string): number | undefined =>
  owner === peopleKey ? peopleStackId : stacks.find(({ key }) => key === owner)?.id

export function isRelationship(attribute: Attribute): attribute is Attribute & { target_stack_id: number } {
  return attribute.target_stack_id !== null
}

/**
 * Builds the look-up maps for the definition rows of one organization. With `base`, the rows are those that changed
 * since, and unchanged definitions keep their objects.
 */
export function buildDefinitions(organization_id: number, rows: DefinitionRows, base?: Definitions): Definitions {
  const attributes = withChanged(base?.attributes, rows.attributes)
  const sortIndexes = Map.groupBy(rows.sort_indexes ?? [], ({ stack_id }) => stack_id)
  const { has_aliases = false, has_tombstones = false, last_segment_id = 0 } = rows
  const { time_zone = 'UTC', default_country = null } = rows
  return Object.freeze({
    ...(base?.attributes === attributes ? base : mapAttributes(attributes)),
    organization_id,
    version: rows.version,
    stacks: withChanged(base?.stacks, rows.stacks),
    attributes,
    consent_types: withChanged(base?.consent_types, rows.consent_types),
    segments: withoutDeleted(withChanged(base?.segments, rows.segments ?? []), rows.deleted_segments),
    roles: rows.roles ?? [],
    last_segment_id,
    has_aliases,
    has_tombstones,
    time_zone,
    default_country,
    sort_indexes: mapEach(sortIndexes, indexes => new Map(indexes.map(index => [index.field, index]))),
  })
}

/** Definitions in order of their ids. A new definition has the highest id. */
function withChanged<D extends { id: number }>(base: readonly D[] | undefined, changed: readonly D[]): readonly D[] {
  if (!base || changed.length === 0) return base ?? changed
  const byId = new Map(base.map(definition => [definition.id, definition]))
  for (const definition of changed) byId.set(definition.id, definition)
  return [...byId.values()]
}

const withoutDeleted = (segments: readonly Segment[], deleted: readonly number[] = []) =>
  deleted.length === 0 ? segments : segments.filter(({ id }) => !deleted.includes(id))

type AttributeMaps = Pick<Definitions, 'attributeById' | 'declared' | 'relationships' | 'required' | 'unique'>

function mapAttributes(attributes: readonly Attribute[]): AttributeMaps {
  const active = attributes.filter(({ state }) => state === 'active')
  const isUnique = (attribute: Attribute): attribute is IndexedAttribute =>
    attribute.unique === true && attribute.index != null
  return {
    attributeById: new Map(attributes.map(attribute => [attribute.id, attribute])),
    declared: mapEach(byOwner(active), own => new Map(own.map(attribute => [attribute.key, attribute]))),
    relationships: mapEach(byOwner(attributes.filter(isRelationship)), own => Map.groupBy(own, ({ key }) => key)),
    required: byOwner(active.filter(({ required }) => required)),
    unique: byOwner(active.filter(isUnique)),
  }
}

const byOwner = <A extends Attribute>(attributes: readonly A[]) =>
  Map.groupBy(attributes, ({ owner_stack_id }) => owner_stack_id)

const mapEach = <K, V, R>(map: ReadonlyMap<K, V>, change: (value: V) => R): Map<K, R> =>
  new Map(map.entries().map(([key, value]) => [key, change(value)]))

/** The process's snapshot of an organization's definitions. Its version shows whether it is current. */
const snapshots = perOrganizationData((): { definitions?: Definitions } => ({}))

/**
 * The cached snapshot, which is read at its first use. It may be older than the database, so callers compare versions
 * if that matters. Inside a transaction, the snapshot of the outer database is used too. A snapshot that is read inside
 * a transaction is cached only for it, because the transaction may never commit.
 */
export async function cachedDefinitions(context: Context, signal?: Signal): Promise<Definitions> {
  const cached = findCached(context)
  context.db.observer?.cache('definitions', cached !== undefined)
  return cached ?? reloadDefinitions(context, signal)
}

function findCached(context: Context): Definitions | undefined {
  const { db, organization_id } = context
  const { definitions } = snapshots(context)
  return definitions ?? (db.outer && snapshots(contextOf(db.outer, organization_id)).definitions)
}

/** A snapshot of `version` or later. A row that was read together with a version is displayed with its snapshot. */
export async function definitionsAt(context: Context, version: number, signal?: Signal): Promise<Definitions> {
  const cached = await cachedDefinitions(context, signal)
  return cached.version >= version ? cached : reloadDefinitions(context, signal)
}

/** The current snapshot of the database. It costs one small query, and a second one if the cached snapshot is older. */
export async function currentDefinitions(context: Context, signal?: Signal): Promise<Definitions> {
  const { db, organization_id } = context
  const [head] = await db.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id], signal)
  return definitionsAt(context, head?.schema_version ?? 0, signal)
}

/**
 * Reads the changes in the database since the cached snapshot, and caches the result, unless a newer snapshot was
 * cached meanwhile. Throws an Error for an unknown organization.
 */
export async function reloadDefinitions(context: Context, signal?: Signal): Promise<Definitions> {
  const keep = definitionsKeeper(context)
  return keep(await readDefinitions(context, findCached(context), signal))
}

/**
 * Returns a function that caches a snapshot, unless a newer one is cached, and returns the newest. Take it before the
 * read of the snapshot, because a read before a switch of the server does not show the new server's data.
 */
export function definitionsKeeper(context: Context): (read: Definitions) => Definitions {
  const snapshot = snapshots(context)
  return read => {
    if (snapshot.definitions && snapshot.definitions.version > read.version) return snapshot.definitions
    snapshot.definitions = read
    return read
  }
}

/**
 * Reads the changes since `base`, or everything without it, on the given reader. Throws an Error for an unknown
 * organization.
 */
export async function readDefinitions(reading: Reading, base?: Definitions, signal?: Signal): Promise<Definitions> {
  const { db: reader, organization_id } = reading
  const [rows] = await reader.query<DefinitionRows>(readDefinitionsSql, [organization_id, base?.version ?? 0], signal)
  if (!rows) throw new Error(`organization ${organization_id} has no row in change_heads`)
  if (rows.version === base?.version) return base
  // A snapshot of another timeline may have versions that this database lacks.
  const isOlder = base !== undefined && rows.version < base.version
  return isOlder ? readDefinitions(reading, undefined, signal) : buildDefinitions(organization_id, rows, base)
}
