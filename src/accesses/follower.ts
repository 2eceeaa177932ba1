import type { Database } from '../db/db.ts'
import { type Follower, inSets, type Progress, passOverIdle, restUntil, type Task } from '../followers/follower.ts'
import { bucketOf, hashesOf, idsOfTime, toPairs } from './batch.ts'
import { forgetAccesses } from './forget.ts'
import {
  deleteBatchesSql,
  deleteIndexSql,
  findAccessWorkSql,
  insertIndexSql,
  readErasedSql,
  readHashesSql,
} from './sql.ts'

const intervalMs = 60_000
const dayMs = 86_400_000
/** The index gets another part as soon as so many batches are not in it, which a look-up compares one by one. */
const minBatches = 1_000
/** A part of the index has at most about so many batches and pairs. */
const maxBatches = 4_000
const maxPairs = 500_000
/** A process may store a batch so long after its first entry. Only older ones are in the index. */
const settledMs = 120_000
/** Entries that were recorded before an erasure and stored after it are found by looking at it again for so long. */
const erasedMs = 10 * 60_000
const maxErased = 5_000
const batchesPerSet = 1_000
/** See {@link inSets}. */
const defaultPausePerWork = 4

type AccessFollowerOptions = {
  /** KITH_ACCESS_LOG_RETENTION_DAYS. */
  retentionDays: number
  nowMs?: () => number
  pausePerWork?: number
}

type Work = { organization_id: number; last_id: number; count: number; is_old: boolean; has_erased: boolean }

/**
 * Looks after the access log by the clock: indexes it, deletes what is older than its retention, and takes erased entities out of what was
 * stored after their erasure.
 */
export function accessFollower(options: AccessFollowerOptions): Follower {
  const { nowMs = Date.now } = options
  return {
    name: 'accesses',
    isForEveryOrganization: true,
    isScheduled: true,
    maxConcurrent: 1,
    work: task => workThrough(task, options),
    passOver: async (db, news) => {
      const ids = news.map(({ organization_id }) => organization_id)
      const found = await findWork(db, ids, options)
      return passOverIdle(news, found.filter(hasWork), ({ after }) => restUntil(after, nowMs() + intervalMs))
    },
  }
}

const hasWork = ({ count, is_old, has_erased }: Work) => count >= minBatches || is_old || has_erased

/** The first id that the retention keeps. */
const firstKept = ({ retentionDays, nowMs = Date.now }: AccessFollowerOptions) =>
  idsOfTime(nowMs() - retentionDays * dayMs, nowMs()).first

const erasedSince = ({ nowMs = Date.now }: AccessFollowerOptions) => new Date(nowMs() - erasedMs).toISOString()

const findWork = (db: Pick<Database, 'query'>, organizations: readonly number[], options: AccessFollowerOptions) =>
  db.query<Work>(findAccessWorkSql, [organizations, firstKept(options), minBatches, erasedSince(options)])

async function workThrough(task: Task, options: AccessFollowerOptions): Promise<Progress> {
  const { nowMs = Date.now } = options
  const { db, organization_id, signal } = task
  const [work] = await findWork(db, [organization_id], options)
  if (work?.has_erased) {
    const erased = await db.query<{ id: string }>(readErasedSql, [organization_id, erasedSince(options), maxErased])
    for (const { id } of erased) if (!signal.aborted) await forgetAccesses(task, [id])
  }
  if (work && work.count >= minBatches) await indexBatches(task, work.last_id, nowMs())
  if (work?.is_old) await deleteOld(task, options)
  return restUntil(task.after, nowMs() + intervalMs)
}

/** Adds the settled batches after one to the index, in parts. */
async function indexBatches(task: Task, afterId: number, nowMs: number): Promise<void> {
  const { db, organization_id, signal } = task
  const lastId = idsOfTime(0, nowMs - settledMs).last
  for (let last = afterId, hasMore = true; hasMore && !signal.aborted; ) {
    const buckets = Array.from({ length: 256 }, (): number[] => [])
    for (let batchCount = 0, pairCount = 0; batchCount < maxBatches && pairCount < maxPairs; ) {
      const values = [organization_id, last, lastId, minBatches]
      const batches = await db.query<{ id: number; hashes: Buffer }>(readHashesSql, values)
      for (const { id, hashes } of batches)
        for (const hash of new Set(hashesOf(hashes))) {
          buckets[bucketOf(hash)]!.push(hash, id)
          pairCount += 1
        }
      batchCount += batches.length
      last = batches.at(-1)?.id ?? last
      hasMore = batches.length === minBatches
      if (!hasMore && batchCount < minBatches) return
      if (!hasMore) break
    }
    await db.query(insertIndexSql, [organization_id, last, buckets.map(toPairs)])
  }
}

async function deleteOld(task: Task, options: AccessFollowerOptions): Promise<void> {
  const { db, organization_id, signal } = task
  const before = firstKept(options)
  await inSets(signal, options.pausePerWork ?? defaultPausePerWork, async () => {
    const [gone] = await db.query<{ count: number }>(deleteBatchesSql, [organization_id, before, batchesPerSet])
    db.observer?.retentionEnded('accesses', gone!.count)
    return gone!.count < batchesPerSet
  })
  await db.query(deleteIndexSql, [organization_id, before])
}
