import type { Database, Transaction } from '../db/db.ts'
import { type Definitions, definitionsAt } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { printEntity } from './entity-json.ts'
import { octetsOf, type Position, sizeToRead, startOf, unboundedOctets } from './pagination.ts'
import { readPage, readPortionSql, readThose } from './read-sql.ts'

/**
 * Rows in order, with line feeds between them, one more than the page has or `has_more`, where more follow. Of an entity whose row is too
 * large there is the id alone. The definitions are no older than any of them. `ids` are those of the page, where they cost something to find.
 */
export type RowsOfPage = { rows: string; ids?: string[]; has_more?: boolean; definitions: Definitions }

/** An entity as it goes out, absent where it is too large to be read beside others, and the identifier that it was asked by. */
export type SerializedEntity = { identifier: string; version: number; json?: string | undefined }

type Dated = { schema_version: number }
type Those = Dated & { identifier: string; version: number; row: string | null }

/** Entities are read together up to this size: 256 of them are 8 MiB. */
export const besideOctets = 32 * 1024

/** So much is made of entities that are read together. The rest of them is read again, each by itself. */
const mostCharacters = 4 * 1024 * 1024

/** A page of the entities of a stack. */
export async function readPageOfStack(
  db: Database,
  organization_id: number,
  stack_id: number,
  position: Position,
  signal?: Signal,
): Promise<RowsOfPage> {
  const values = [organization_id, stack_id, startOf(position), sizeToRead(position), octetsOf(position)]
  const [page] = await db.query<Dated & { rows: string | null }>(readPage[position.direction], values, signal)
  const definitions = await definitionsAt(db, organization_id, page!.schema_version, signal)
  return { rows: page!.rows ?? '', definitions }
}

/**
 * The rows of the first of these entities, null where there is none any more, until they have `octets` together: at least one, and one
 * may go beyond.
 */
export async function readPortion(
  db: Database,
  organization_id: number,
  stack_id: number,
  ids: readonly string[],
  octets: number,
  signal?: Signal,
): Promise<{ rows: (string | null)[]; definitions: Definitions }> {
  const values = [organization_id, stack_id, ids, octets]
  const portion = await db.query<Dated & { row: string | null }>(readPortionSql, values, signal)
  const definitions = await definitionsAt(db, organization_id, newestOf(portion), signal)
  return { rows: portion.map(({ row }) => row), definitions }
}

export type Identifiers = { by: 'id' | 'external_id'; identifiers: readonly string[] }

/** Entities of a stack, in no order; missing ones are left out, and of one whose row has more than `rowOctets` the JSON. */
export async function readSerialized(
  db: Database,
  organization_id: number,
  stack_id: number,
  { by, identifiers, rowOctets = unboundedOctets }: Identifiers & { rowOctets?: number },
  signal?: Signal,
): Promise<SerializedEntity[]> {
  const values = [organization_id, stack_id, identifiers, rowOctets]
  const those = await db.query<Those>(readThose[by], values, signal)
  const definitions = await definitionsAt(db, organization_id, newestOf(those), signal)
  return showThose(those, definitions, stack_id)
}

/** The same by internal identifier within a transaction, whose definitions these are. */
export async function readSerializedWithin(
  tx: Transaction,
  definitions: Definitions,
  stack_id: number,
  ids: readonly string[],
  rowOctets: number,
): Promise<SerializedEntity[]> {
  const those = await tx.query<Those>(readThose.id, [definitions.organization_id, stack_id, ids, rowOctets])
  return showThose(those, definitions, stack_id)
}

function showThose(those: readonly Those[], definitions: Definitions, stack_id: number): SerializedEntity[] {
  let characters = 0
  return those.map(({ identifier, version, row }, index) => {
    if (row === null || (index > 0 && characters > mostCharacters)) return { identifier, version }
    const json = printEntity(row, definitions, stack_id)
    characters += json.length
    return { identifier, version, json }
  })
}

/** The version of the definitions that the newest of them was read beside. */
const newestOf = (read: readonly Dated[]) =>
  read.reduce((version, { schema_version }) => Math.max(version, schema_version), 0)
