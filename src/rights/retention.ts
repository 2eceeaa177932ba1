import { randomUUID } from 'node:crypto'
import type { Database } from '../db/db.ts'
import {
  type Follower,
  inSets,
  type News,
  type Progress,
  passOverIdle,
  restUntil,
  type Task,
} from '../followers/follower.ts'
import { type Author, changeOrganization } from '../organizations/change-organization.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { uuidOfRecord } from '../values/formats.ts'
import { eraseEntities, planErasures } from './erasure/erase-entities.ts'
import {
  emptyChangesSql,
  findExpiredSql,
  findRetentionSql,
  forgetImportsSql,
  forgetJobsSql,
  forgetRefusalsSql,
} from './retention-sql.ts'

const recordsPerSet = 1_000
const changesPerSet = 1_000
/** A retention counts days, so an hour does not matter. */
const intervalMs = 3_600_000
const dayMs = 86_400_000
/** See {@link inSets}. */
const defaultPausePerWork = 4

export const retentionAuthor = (): Author => ({ actor: 'retention', request_id: randomUUID() })

type RetentionOptions = {
  /** KITH_LOG_RETENTION_DAYS. Undefined means that changes keep their values. */
  logRetentionDays?: number | undefined
  nowMs?: () => number
  pausePerWork?: number
}

/**
 * Erases the records of event stacks that are older than the retention of their stack, and removes the values of
 * changes that are older than the retention of the log. It works by the clock and in small sets. Its position is the
 * last change whose values it has removed.
 */
export function retentionFollower(options: RetentionOptions): Follower {
  return {
    name: 'retention',
    isForEveryOrganization: true,
    isScheduled: true,
    maxConcurrent: 1,
    work: task => workThrough(task, options),
    passOver: (db, news) => passOverOthers(db, news, options),
  }
}

/** Skips the organizations that keep everything, and those whose log is not old enough yet. */
async function passOverOthers(db: Database, news: readonly News[], options: RetentionOptions) {
  const { nowMs = Date.now } = options
  const values = [news.map(each => each.organization_id), news.map(({ after }) => after), oldBefore(options) ?? null]
  const found = await db.query<{ organization_id: number }>(findRetentionSql, values)
  return passOverIdle(news, found, ({ after }) => restUntil(after, nowMs() + intervalMs))
}

/** The time before which changes lose their values. Undefined if changes keep them. */
const oldBefore = ({ logRetentionDays, nowMs = Date.now }: RetentionOptions): string | undefined =>
  logRetentionDays === undefined ? undefined : new Date(nowMs() - logRetentionDays * dayMs).toISOString()

async function workThrough(task: Task, options: RetentionOptions): Promise<Progress> {
  const { nowMs = Date.now } = options
  await eraseExpiredRecords(task, options)
  const sequence = await emptyOldChanges(task, options)
  return restUntil(sequence, nowMs() + intervalMs)
}

async function eraseExpiredRecords(task: Task, options: RetentionOptions): Promise<void> {
  const { pausePerWork = defaultPausePerWork } = options
  const { stacks } = await currentDefinitions(task)
  for (const { id, retention_days } of stacks)
    if (retention_days !== null) await inSets(task.signal, pausePerWork, () => eraseSet(task, options, id))
}

/**
 * Erases the oldest expired records of a stack in one transaction. It reads the retention again, because it may have
 * changed. Returns whether no expired record is left.
 */
async function eraseSet(task: Task, { nowMs = Date.now }: RetentionOptions, stack_id: number): Promise<boolean> {
  const { db, organization_id } = task
  const definitions = await currentDefinitions(task)
  const retention_days = definitions.stacks.find(({ id }) => id === stack_id)?.retention_days ?? null
  if (retention_days === null) return true
  const beforeMs = nowMs() - retention_days * dayMs
  const values = [organization_id, stack_id, firstIdAt(beforeMs), new Date(beforeMs).toISOString(), recordsPerSet]
  const expired = await db.query<{ id: string }>(findExpiredSql, values)
  if (expired.length === 0) return true
  const targets = expired.map(({ id }) => ({ stack_id, id }))
  const author = retentionAuthor()
  const entities = await changeOrganization(task, author, async locked => {
    const planned = await planErasures(locked, targets)
    // Stored responses expire within a day, which is the shortest retention. The access log has its own retention.
    const erased = await eraseEntities(locked, planned, { ...author, searchesCopies: false })
    return { result: erased.entities.length }
  })
  db.observer?.retentionEnded('records', entities)
  return expired.length < recordsPerSet
}

/**
 * The smallest id of records that were created at a time. An id begins with the second of the creation. An extra minute
 * allows for a clock that was ahead.
 */
function firstIdAt(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000) + 60)
  return uuidOfRecord(seconds.toString(16).padStart(8, '0').padEnd(24, '0'))
}

type EmptiedSet = { count: number; last: number; emptied: number }

/** Removes the values of old changes. Each set commits together with the position. Returns the position. */
async function emptyOldChanges(task: Task, options: RetentionOptions): Promise<number> {
  const { db, organization_id, after } = task
  const before = oldBefore(options)
  if (before === undefined) return after
  let sequence = after
  await inSets(task.signal, options.pausePerWork ?? defaultPausePerWork, async () => {
    const set = await db.transaction(async tx => {
      const [row] = await tx.query<EmptiedSet>(emptyChangesSql, [organization_id, sequence, before, changesPerSet])
      await tx.query(forgetImportsSql, [organization_id, row!.last])
      await tx.query(forgetRefusalsSql, [organization_id, row!.last])
      await tx.query(forgetJobsSql, [organization_id, row!.last])
      await task.advance(tx, row!.last)
      return row!
    })
    sequence = set.last
    db.observer?.retentionEnded('changes', set.emptied)
    return set.count < changesPerSet
  })
  return sequence
}
