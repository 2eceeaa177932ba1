import { awaitPipelined } from '../db/db.ts'
import type { Follower, Progress, Task } from '../followers/follower.ts'
import { countObservedSql, followerName } from './sql.ts'

/** The most keys of an owner that are counted. */
export const maxKeys = 10_000
const changesPerBatch = 2_000
/** The pause between two runs for an organization. It limits what counting costs, and how late a key is listed. */
const pauseMs = 1_000

export type ObservingOptions = { nowMs?: () => number }

/**
 * The follower that counts the values written under undeclared keys. It begins when an organization first lists them, because it takes
 * as much of the database as a tenth of the writes. The counts commit with its position. An erasure locks the position
 * first, so that no key of an erased entity is counted after it.
 */
export function observedFollower(options: ObservingOptions = {}): Follower {
  return { name: followerName, isForEveryOrganization: false, maxConcurrent: 1, work: task => count(task, options) }
}

async function count(task: Task, { nowMs = Date.now }: ObservingOptions): Promise<Progress> {
  const { db, organization_id, head, signal } = task
  let sequence = task.after
  while (sequence < head) {
    if (signal.aborted) return { sequence }
    const until = Math.min(head, sequence + changesPerBatch)
    const values = [organization_id, sequence, until, maxKeys]
    await db.transaction(tx => awaitPipelined([task.advance(tx, until), tx.query(countObservedSql, values)]))
    sequence = until
  }
  return { sequence, notBeforeMs: nowMs() + pauseMs }
}
