import { setTimeout as pause } from 'node:timers/promises'
import { uuidOfRecord } from '../entities/identifiers.ts'
import type { Follower, Progress, Task } from '../followers/follower.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { eraseRecords } from './erase-records.ts'
import { emptyChangesSql, findExpiredSql } from './retention-sql.ts'

const recordsPerSet = 1_000
const changesPerSet = 1_000
/** A retention counts days, so an hour more or less does not matter. */
const intervalMs = 3_600_000
const dayMs = 86_400_000
/** After each set the follower pauses for this many times as long as the set took, so that writes keep the database. */
const pausePerWork = 4

export type RetentionOptions = {
  /** KITH_LOG_RETENTION_DAYS. Undefined: the values of changes stay. */
  logRetentionDays?: number | undefined
  nowMs?: () => number
  pausePerWork?: number
}

/**
 * Erases the records of event stacks that are older than the retention of their stack, and removes the values of changes that are older
 * than that of the log. It works by the clock and in small sets. Its position is the last change without values, and stays below
 * the head, so that the follower also wakes up in an organization where nothing changes.
 */
export function retentionFollower(options: RetentionOptions): Follower {
  return {
    name: 'retention',
    isForEveryOrganization: true,
    isScheduled: true,
    maxConcurrent: 1,
    work: task => workThrough(task, options),
  }
}

async function workThrough(task: Task, options: RetentionOptions): Promise<Progress> {
  const { nowMs = Date.now } = options
  await eraseExpired(task, options)
  const sequence = await emptyOldChanges(task, options)
  return { sequence, notBeforeMs: nowMs() + intervalMs }
}

/** Runs sets until one is the last, with a pause after each. */
async function inSets({ signal }: Task, options: RetentionOptions, runSet: () => Promise<boolean>): Promise<void> {
  const factor = options.pausePerWork ?? pausePerWork
  while (!signal.aborted) {
    const startedMs = performance.now()
    if (await runSet()) return
    await pause((performance.now() - startedMs) * factor, undefined, { signal: signal as AbortSignal }).catch(() => {})
  }
}

async function eraseExpired(task: Task, options: RetentionOptions): Promise<void> {
  const { db, organization_id } = task
  const { nowMs = Date.now } = options
  const { stacks } = await currentDefinitions(db, organization_id)
  for (const { id: stack_id, retention_days } of stacks) {
    if (retention_days === null) continue
    const beforeMs = nowMs() - retention_days * dayMs
    await inSets(task, options, async () => {
      const values = [organization_id, stack_id, firstIdAt(beforeMs), new Date(beforeMs).toISOString(), recordsPerSet]
      const expired = await db.query<{ id: string }>(findExpiredSql, values)
      if (expired.length === 0) return true
      const erased = await eraseRecords(task, stack_id, expired.map(({ id }) => id))
      db.observer?.retentionEnded('records', erased)
      return expired.length < recordsPerSet
    })
  }
}

/** A record's id begins with the second of its creation. A minute more allows for a clock that was ahead. */
function firstIdAt(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000) + 60)
  return uuidOfRecord(seconds.toString(16).padStart(8, '0').padEnd(24, '0'))
}

/** Returns the last number up to which the changes have no values. */
async function emptyOldChanges(task: Task, options: RetentionOptions): Promise<number> {
  const { db, organization_id } = task
  const { logRetentionDays, nowMs = Date.now } = options
  let sequence = task.after
  if (logRetentionDays === undefined) return sequence
  const before = new Date(nowMs() - logRetentionDays * dayMs).toISOString()
  await inSets(task, options, async () => {
    type Set = { count: number; last: number; emptied: number }
    const set = await db.transaction(async tx => {
      const [row] = await tx.query<Set>(emptyChangesSql, [organization_id, sequence, before, changesPerSet])
      sequence = Math.max(sequence, Math.min(row!.last, task.head - 1))
      await task.advance(tx, sequence)
      return row!
    })
    db.observer?.retentionEnded('changes', set.emptied)
    return set.count < changesPerSet || set.last >= task.head
  })
  return sequence
}
