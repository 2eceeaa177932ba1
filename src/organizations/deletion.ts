import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../db/db.ts'
import { deleteInSteps } from '../db/delete-in-steps.ts'
import { refuse } from '../values/errors.ts'
import { deleteRowsSql, findDeletedSql, markDeletedSql, organizationTables } from './deletion-sql.ts'
import { defaultOrganizationKey, findOrganization } from './organizations.ts'

/**
 * A process accepts the tokens of a deleted organization for up to 10 seconds, and a request may run for another 10.
 */
const unusedAfterSeconds = 20

/** The rows that a step deletes. 5,000 rows of the change log take 40 ms. */
const rowsPerStep = 5_000

type Progress = {
  /** Runs when nothing new can be created for the organization, and before its rows are deleted. */
  marked?: () => Promise<void>
  waits?: (seconds: number) => void
  /** Reports the number of rows deleted so far. */
  deleted?: (rows: number) => void
}

/** The number of deleted rows, by table. Tables without rows are absent. */
export type DeletedRows = Record<string, number>

/** Throws a Fault unless an organization can be deleted: 404 for an unknown key, 400 for the default organization. */
export async function requireDeletable(db: Database, key: string): Promise<void> {
  if (key === defaultOrganizationKey)
    refuse('invalid_parameter', `Every installation has the organization ${key}. It cannot be deleted.`)
  if (!(await findOrganization(db, key)) && !(await findDeleted(db, key)))
    refuse('not_found', `There is no organization ${JSON.stringify(key)}.`)
}

type Deleted = { id: number; seconds: number }

const findDeleted = async (db: Database, key: string) => (await db.query<Deleted>(findDeletedSql, [key]))[0]

/**
 * Deletes an organization completely: marks it, waits until no request can use it, then deletes its rows in small
 * transactions. Its key stays taken, because tokens name the key. A repeated call continues an interrupted one. Throws
 * as {@link requireDeletable}.
 */
export async function deleteOrganization(db: Database, key: string, progress: Progress = {}): Promise<DeletedRows> {
  await requireDeletable(db, key)
  await db.query(markDeletedSql, [key])
  await progress.marked?.()
  const organization = (await findDeleted(db, key))!
  const seconds = Math.ceil(unusedAfterSeconds - organization.seconds)
  if (seconds > 0) {
    progress.waits?.(seconds)
    await pause(seconds * 1_000)
  }
  const removed: DeletedRows = {}
  let total = 0
  const limit = rowsPerStep
  const deleted = (count: number) => {
    total += count
    if (count > 0) progress.deleted?.(total)
  }
  for (const table of organizationTables) {
    const count = await deleteInSteps(db, deleteRowsSql[table], [organization.id, limit], { limit, deleted })
    if (count > 0) removed[table] = count
  }
  return removed
}
