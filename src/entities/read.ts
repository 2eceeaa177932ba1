import type { Database, Statement, Transaction } from '../db/db.ts'
import type { Signal } from '../signal.ts'
import type { Links, Read, Target } from './row.ts'
import { read_by_external_id, read_by_id } from './sql.ts'

type ReadRow = Omit<Read, 'links'> & {
  links: [attribute_id: number, id: string, external_id: string | null][] | null
}

const no_links: Links = new Map()

/** Entities of one stack by internal identifier, in no order; missing ones are left out. */
export function readById(
  db: Database | Transaction,
  organization_id: number,
  stack_id: number,
  ids: string[],
  signal?: Signal,
): Promise<Read[]> {
  return readRows(db, read_by_id, [organization_id, stack_id, ids], signal)
}

/** Entities of one stack by external identifier, in no order; missing ones are left out. */
export function readByExternalId(
  db: Database | Transaction,
  organization_id: number,
  stack_id: number,
  external_ids: string[],
  signal?: Signal,
): Promise<Read[]> {
  return readRows(db, read_by_external_id, [organization_id, stack_id, external_ids], signal)
}

/** Runs a statement that begins as `read_entities`. */
export async function readRows(
  db: Database | Transaction,
  by: Statement,
  values: unknown[],
  signal?: Signal,
): Promise<Read[]> {
  const rows = await db.query<ReadRow>(by, values, signal)
  return rows.map(row => Object.assign(row, { links: row.links ? groupLinks(row.links) : no_links }))
}

function groupLinks(links: NonNullable<ReadRow['links']>): Map<number, Target[]> {
  const grouped = new Map<number, Target[]>()
  for (const [attribute_id, id, external_id] of links) {
    const targets = grouped.get(attribute_id)
    if (targets) targets.push({ id, external_id })
    else grouped.set(attribute_id, [{ id, external_id }])
  }
  return grouped
}
