import type { Database } from '../db/db.ts'
import { listOrganizations, type Organization } from '../organizations/organizations.ts'
import type { Signal } from '../signal.ts'
import { deleteDanglingLinksSql, readDeletionsSql, recordSweepSql } from './dangling-link-cleanup-sql.ts'

const deletionsPerBatch = 200
const linksPerBatch = 1_000

export type CleanupOptions = {
  /** Minimum age of a deletion. A write that read the target before its deletion may still link to it. */
  graceMs: number
  signal?: Signal
}

/**
 * Removes links to deleted entities in small transactions. It follows the deletions in each organization's change log.
 * Readers join the target and never see such links, so the cleanup is not urgent. Returns the number of removed links.
 */
export async function cleanDanglingLinks(db: Database, options: CleanupOptions): Promise<number> {
  let removed = 0
  for (const organization of await listOrganizations(db)) removed += await cleanOrganization(db, organization, options)
  return removed
}

async function cleanOrganization(
  db: Database,
  { id }: Organization,
  { graceMs, signal }: CleanupOptions,
): Promise<number> {
  const before = new Date(Date.now() - graceMs).toISOString()
  let removed = 0
  while (!signal?.aborted) {
    const due = await readDue(db, id, before)
    const last = due.at(-1)
    if (!last) break
    const targets = due.map(deletion => deletion.entity_id)
    removed += await deleteLinksTo(db, id, targets, signal)
    // After an abort the position is not recorded, so the next run finds the remaining links.
    if (!signal?.aborted) await db.query(recordSweepSql, [id, last.sequence])
  }
  return removed
}

type Deletion = { sequence: number; entity_id: string; ripe: boolean }

/**
 * Reads the next deletions up to the first recent one. Times do not strictly follow the change numbers, and the
 * recorded position must not pass a recent deletion.
 */
async function readDue(db: Database, organization_id: number, before: string): Promise<Deletion[]> {
  const deletions = await db.query<Deletion>(readDeletionsSql, [organization_id, before, deletionsPerBatch])
  const firstRecent = deletions.findIndex(deletion => !deletion.ripe)
  return firstRecent === -1 ? deletions : deletions.slice(0, firstRecent)
}

async function deleteLinksTo(db: Database, organization_id: number, targets: string[], signal?: Signal) {
  let deleted = 0
  while (!signal?.aborted) {
    const [links] = await db.query<{ found: number; gone: number }>(deleteDanglingLinksSql, [
      organization_id,
      targets,
      linksPerBatch,
    ])
    deleted += links!.gone
    if (links!.found < linksPerBatch) break
  }
  return deleted
}
