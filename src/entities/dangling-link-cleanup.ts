import type { Database } from '../db/db.ts'
import { listOrganizations, type Organization } from '../organizations/organizations.ts'
import type { Signal } from '../signal.ts'
import { deleteDanglingLinksSql, readDeletionsSql, recordSweepSql } from './dangling-link-cleanup-sql.ts'

const deletionsAtOnce = 200
const linksAtOnce = 1_000

export type SweepOptions = {
  /** Deletions younger than this are left: a write that found the target before it went may still be linking to it. */
  graceMs: number
  signal?: Signal
}

/**
 * Removes the links that point to deleted entities, in small transactions, following each organization's deletions in
 * the change log. Readers join entities and never see such links, so nothing waits for this. Answers how many went.
 */
export async function cleanDanglingLinks(db: Database, options: SweepOptions): Promise<number> {
  let swept = 0
  for (const organization of await listOrganizations(db)) swept += await sweepOrganization(db, organization, options)
  return swept
}

async function sweepOrganization(
  db: Database,
  { id }: Organization,
  { graceMs, signal }: SweepOptions,
): Promise<number> {
  const before = new Date(Date.now() - graceMs).toISOString()
  let swept = 0
  while (!signal?.aborted) {
    const ripe = await readRipe(db, id, before)
    const last = ripe.at(-1)
    if (!last) break
    const targets = ripe.map(deletion => deletion.entity_id)
    swept += await deleteLinksTo(db, id, targets, signal)
    // Stopped in the middle: what is left is found again from here.
    if (!signal?.aborted) await db.query(recordSweepSql, [id, last.sequence])
  }
  return swept
}

type Deletion = { sequence: number; entity_id: string; ripe: boolean }

/** The next deletions, up to the first young one: times do not quite follow the numbers, and none may be passed over. */
async function readRipe(db: Database, organization_id: number, before: string): Promise<Deletion[]> {
  const deletions = await db.query<Deletion>(readDeletionsSql, [organization_id, before, deletionsAtOnce])
  const young = deletions.findIndex(deletion => !deletion.ripe)
  return young === -1 ? deletions : deletions.slice(0, young)
}

async function deleteLinksTo(db: Database, organization_id: number, targets: string[], signal?: Signal) {
  let deleted = 0
  while (!signal?.aborted) {
    const [links] = await db.query<{ found: number; gone: number }>(deleteDanglingLinksSql, [
      organization_id,
      targets,
      linksAtOnce,
    ])
    deleted += links!.gone
    if (links!.found < linksAtOnce) break
  }
  return deleted
}
