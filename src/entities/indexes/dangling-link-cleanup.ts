import type { Database } from '../../db/db.ts'
import type { Follower, Progress, Task } from '../../followers/follower.ts'
import type { Signal } from '../../signal.ts'
import { deleteDanglingLinksSql, readDeletionsSql, rememberDanglingLinksSql } from './dangling-link-cleanup-sql.ts'

const deletionsPerBatch = 200
const linksPerBatch = 1_000
/** Readers join the target and never see dangling links, so the cleanup of an organization is not urgent. */
const intervalMs = 30_000

export type CleanupOptions = {
  /** Minimum age of a deletion. A write that read the target before its deletion may still link to it. */
  graceMs: number
  nowMs?: () => number
  /** Receives the number of links that a batch has removed. */
  onRemoved?: (links: number) => void
}

/** Follows the deletions in the change log, and removes links to deleted entities in small transactions. */
export function danglingLinkFollower(options: CleanupOptions): Follower {
  return {
    name: 'dangling_links',
    isForEveryOrganization: true,
    maxConcurrent: 1,
    work: task => cleanOrganization(task, options),
  }
}

async function cleanOrganization(task: Task, options: CleanupOptions): Promise<Progress> {
  const { db, organization_id, head, signal } = task
  const { graceMs, nowMs = Date.now, onRemoved } = options
  let sequence = task.after
  while (!signal.aborted) {
    const deletions = await readDeletions(task, sequence, nowMs() - graceMs)
    // Times do not strictly follow the change numbers, and the position must not pass a recent deletion.
    const firstRecent = deletions.findIndex(deletion => !deletion.ripe)
    const due = firstRecent === -1 ? deletions : deletions.slice(0, firstRecent)
    const removed = await deleteLinksTo(
      db,
      organization_id,
      due.map(deletion => deletion.entity_id),
      signal,
    )
    onRemoved?.(removed)
    // After an abort the position stays, so the next run finds the remaining links.
    if (signal.aborted) break
    const recent = deletions[firstRecent]
    if (recent)
      return { sequence: recent.sequence - 1, notBeforeMs: Math.max(Date.parse(recent.at) + graceMs, nowMs()) }
    if (deletions.length < deletionsPerBatch) return { sequence: head, notBeforeMs: nowMs() + intervalMs }
    sequence = deletions.at(-1)!.sequence
    await db.transaction(tx => task.advance(tx, sequence))
  }
  return { sequence }
}

type Deletion = { sequence: number; entity_id: string; at: string; ripe: boolean }

function readDeletions({ db, organization_id, head }: Task, after: number, beforeMs: number): Promise<Deletion[]> {
  const before = new Date(beforeMs).toISOString()
  return db.query<Deletion>(readDeletionsSql, [organization_id, before, deletionsPerBatch, after, head])
}

async function deleteLinksTo(db: Database, organization_id: number, targets: string[], signal: Signal) {
  let deleted = 0
  while (targets.length > 0 && !signal.aborted) {
    const values = [organization_id, targets, linksPerBatch]
    // A link that is remembered and not deleted stays remembered, which costs an erasure one look at a log.
    await db.query(rememberDanglingLinksSql, values)
    const [links] = await db.query<{ found: number; gone: number }>(deleteDanglingLinksSql, values)
    deleted += links!.gone
    if (links!.found < linksPerBatch) break
  }
  return deleted
}
