import type { Context } from '../../db/context.ts'
import type { Transaction } from '../../db/db.ts'
import { type Definitions, definitionsAt, peopleStackId } from '../../organizations/definitions.ts'
import type { Signal } from '../../process/signal.ts'
import type { FieldRights } from '../../route/field-rights.ts'
import { printEntity } from './entity-json.ts'
import { type Count, maxRowBytesOf, type Position, sizeToRead, startOf, unlimitedRowBytes } from './pagination.ts'
import { type PortionRow, readPortionOf } from './projected-portion.ts'
import { type Projection, readableProjection, wholeById, withLinksById } from './projection.ts'
import {
  readByIdentifier,
  readPageByKey,
  readPeopleByAnyIdentifier,
  readPortionSql,
  soughtByIdentifier,
} from './read-sql.ts'

/**
 * The rows of a page, in order, separated by line feeds. If more follow, `rows` has one row more than the page. A row
 * that is too large is replaced by its id. The definitions are at least as new as the rows. `last_term` is the sort
 * term of the last entity of a sorted page. `counted` is the count of all entities, if requested.
 */
export type RowsOfPage = {
  rows: string
  /** Whether more follow, if `rows` has no row more than the page. */
  has_more?: boolean
  last_term?: string | undefined
  counted?: Count | undefined
  definitions: Definitions
}

/**
 * An entity as JSON, and the identifier of the request. `json` is absent if the entity is too large for a batch. The
 * definitions are at least as new as the entity.
 */
export type SerializedEntity = {
  identifier: string
  version: number
  definitionsVersion: number
  json?: string | undefined
}

type WithSchemaVersion = { schema_version: number }
type IdentifiedRow = { identifier: string; version: number; row: string | null }
type SerializedRow = WithSchemaVersion & IdentifiedRow

/** An entity as its row, which is null where {@link SerializedEntity} has no JSON. */
export type ReadRow = IdentifiedRow & { definitions: Definitions }

/** Maximum size of a row that is read in a batch: 256 of them are 8 MiB. */
export const maxBatchedRowBytes = 32 * 1024

/** Maximum rows of one batch, in characters. The remaining entities are read again one by one. */
const maxBatchCharacters = 4 * 1024 * 1024

/** Reads a page of the people with an email or phone, by its key. */
export async function readPageOfKey(
  context: Context,
  { kind, key }: { kind: keyof typeof readPageByKey; key: string },
  position: Position,
  signal?: Signal,
): Promise<RowsOfPage> {
  const { db, organization_id } = context
  const values = [organization_id, key, startOf(position), sizeToRead(position), maxRowBytesOf(position)]
  const [page] = await db.query<WithSchemaVersion & { rows: string | null }>(readPageByKey[kind], values, signal)
  const definitions = await definitionsAt(context, page!.schema_version, signal)
  return { rows: page!.rows ?? '', definitions }
}

/**
 * Reads the rows of the first of these entities until their sizes add up to `minBytes`. At least one row is read. A row
 * is null if its entity no longer exists.
 */
export async function readPortion(
  context: Context,
  stack_id: number,
  { ids, minBytes, projection }: { ids: readonly string[]; minBytes: number; projection?: Projection | undefined },
  signal?: Signal,
): Promise<{ rows: (string | null)[]; definitions: Definitions }> {
  const { db, organization_id } = context
  const values = [organization_id, stack_id, ids, minBytes]
  const portion = projection
    ? await readPortionOf(db, values, { projection }, signal)
    : await db.query<PortionRow>(readPortionSql, values, signal)
  const definitions = await definitionsAt(context, newestVersion(portion), signal)
  return { rows: portion.map(({ row }) => row), definitions }
}

/**
 * Reads the first of the entities that these identifiers lead to, until their rows have `minBytes`. An identifier
 * without an entity gives null for `id` and `row`. A person is also found by a further identifier.
 */
export async function readNamed(
  context: Context,
  stack_id: number,
  { by, identifiers, minBytes, projection }: Identifiers & { minBytes: number; projection?: Projection | undefined },
  signal?: Signal,
): Promise<{ rows: PortionRow[]; definitions: Definitions }> {
  const { db, organization_id } = context
  const sought = soughtByIdentifier[stack_id === peopleStackId ? 'people' : 'records'][by]
  const rows = await readPortionOf(
    db,
    [organization_id, stack_id, identifiers, minBytes],
    { projection, sought },
    signal,
  )
  return { rows, definitions: await definitionsAt(context, newestVersion(rows), signal) }
}

export type Identifiers = { by: 'id' | 'external_id'; identifiers: readonly string[] }

/**
 * The form of a read: the largest row that is read with others, whether links are shown by internal identifier, and the
 * role's fields to show.
 */
export type ReadForm = { maxRowBytes?: number; isById?: boolean; rights?: FieldRights | undefined }

/**
 * Reads entities of a stack, in any order. Missing ones are left out. An entity above `maxRowBytes` has no row. Unknown
 * identifiers of people are looked up among the further ones, because the cached definitions may not show yet that the
 * organization has any.
 */
export async function readRows(
  context: Context,
  stack_id: number,
  { by, identifiers, maxRowBytes = unlimitedRowBytes, isById = false }: Identifiers & Omit<ReadForm, 'rights'>,
  signal?: Signal,
): Promise<ReadRow[]> {
  const { db, organization_id } = context
  const values = [organization_id, stack_id, identifiers, maxRowBytes, isById]
  const rows = await db.query<SerializedRow>(readByIdentifier[by], values, signal)
  if (stack_id === peopleStackId && rows.length < identifiers.length) {
    const found = new Set(rows.map(({ identifier }) => identifier))
    const missing = [...new Set(identifiers).difference(found)]
    const byFurther = [organization_id, missing, maxRowBytes, isById]
    if (missing.length > 0)
      rows.push(...(await db.query<SerializedRow>(readPeopleByAnyIdentifier[by], byFurther, signal)))
  }
  const definitions = await definitionsAt(context, newestVersion(rows), signal)
  return withinBatch(rows).map(row => ({ ...row, definitions }))
}

/** As {@link readRows}, and prints the entities. */
export async function readSerialized(
  context: Context,
  stack_id: number,
  selection: Identifiers & ReadForm,
  signal?: Signal,
): Promise<SerializedEntity[]> {
  const rows = await readRows(context, stack_id, selection, signal)
  return rows.map(row => serialize(row, stack_id, selection))
}

/** Reads entities by internal identifier within a transaction, with the definitions of that transaction. */
export async function readSerializedWithin(
  tx: Transaction,
  definitions: Definitions,
  stack_id: number,
  ids: readonly string[],
  maxRowBytes: number,
): Promise<SerializedEntity[]> {
  const rows = await tx.query<SerializedRow>(readByIdentifier.id, [
    definitions.organization_id,
    stack_id,
    ids,
    maxRowBytes,
    false,
  ])
  return withinBatch(rows).map(row => serialize({ ...row, definitions }, stack_id, {}))
}

/** Leaves out the rows beyond the size of a batch. */
function withinBatch(rows: readonly IdentifiedRow[]): IdentifiedRow[] {
  let characters = 0
  return rows.map(({ identifier, version, row }, index) => {
    const isBeyond = index > 0 && characters > maxBatchCharacters
    characters += row?.length ?? 0
    return { identifier, version, row: isBeyond ? null : row }
  })
}

/** Prints the members of an entity that the caller's role may read. */
export function serialize(
  { identifier, version, row, definitions }: ReadRow,
  stack_id: number,
  { rights, isById }: ReadForm,
): SerializedEntity {
  const head = { identifier, version, definitionsVersion: definitions.version }
  if (row === null) return head
  const readable = readableProjection({ rights }, stack_id)
  const projection = isById ? (readable ? withLinksById(readable) : wholeById(stack_id)) : readable
  return { ...head, json: printEntity(row, definitions, stack_id, projection) }
}

/** The highest version of the definitions among the rows. */
const newestVersion = (rows: readonly WithSchemaVersion[]) =>
  rows.reduce((version, { schema_version }) => Math.max(version, schema_version), 0)
