import type { Database, Transaction } from '../db/db.ts'
import { type Definitions, definitionsAt } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { type Position, sizeToRead, startOf } from './page.ts'
import { printEntity, printPage } from './print.ts'
import { read_page, read_those } from './shown-sql.ts'

/** A page as it goes out: its items as JSON texts with commas between them. */
export type ShownPage = { items: string; has_more: boolean }

/** An entity as it goes out, and the identifier that it was asked by. */
export type Shown = { identifier: string; version: number; json: string }

type Dated = { schema_version: number }
type Those = Dated & { identifier: string; version: number; row: string }

/** A page of the entities of a stack, in order of their ids, shown by definitions that are no older than its rows. */
export async function readShownPage(
  db: Database,
  organization_id: number,
  stack_id: number,
  position: Position,
  signal?: Signal,
): Promise<ShownPage> {
  const values = [organization_id, stack_id, startOf(position), sizeToRead(position)]
  const [page] = await db.query<Dated & { rows: string | null }>(read_page[position.direction], values, signal)
  const definitions = await definitionsAt(db, organization_id, page!.schema_version, signal)
  return printPage(page!.rows ?? '', position.size, definitions, stack_id)
}

/** Entities of a stack by identifiers of one sort, in no order; missing ones are left out. */
export async function readShown(
  db: Database,
  organization_id: number,
  stack_id: number,
  by: 'id' | 'external_id',
  identifiers: readonly string[],
  signal?: Signal,
): Promise<Shown[]> {
  const those = await db.query<Those>(read_those[by], [organization_id, stack_id, identifiers], signal)
  const definitions = await definitionsAt(db, organization_id, newestOf(those), signal)
  return showThose(those, definitions, stack_id)
}

/** The same by internal identifier within a transaction, whose definitions these are. */
export async function readShownWithin(
  tx: Transaction,
  definitions: Definitions,
  stack_id: number,
  ids: readonly string[],
): Promise<Shown[]> {
  const those = await tx.query<Those>(read_those.id, [definitions.organization_id, stack_id, ids])
  return showThose(those, definitions, stack_id)
}

const showThose = (those: readonly Those[], definitions: Definitions, stack_id: number): Shown[] =>
  those.map(({ identifier, version, row }) => ({ identifier, version, json: printEntity(row, definitions, stack_id) }))

/** The version of the definitions that the newest of them was read beside. */
const newestOf = (read: readonly Dated[]) =>
  read.reduce((version, { schema_version }) => Math.max(version, schema_version), 0)
