import type { Reading } from '../db/context.ts'
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
/**
 * The index gets another part when this many batches are not indexed. A look-up compares unindexed batches one by one.
 */
const minBatches = 1_000
/** A part of the index is complete with this many batches, or this many pairs of a hash and its batch. */
const maxBatches = 4_000
const maxPairs = 500_000
const bucketCount = 256
/** A process may store a batch up to this long after its first entry, so only older batches are indexed. */
const settledMs = 120_000
/** An erasure is repeated for this long, because entries from before it may be stored after it. */
const repeatErasureMs = 10 * 60_000
const maxErased = 5_000
const batchesPerDeletion = 1_000

type AccessFollowerOptions = {
  /** KITH_ACCESS_LOG_RETENTION_DAYS. */
  retentionDays: number
  nowMs?: () => number
  /** See {@link inSets}. */
  pausePerWork?: number
}
type Settings = Required<AccessFollowerOptions>

type Work = { organization_id: number; last_id: number; count: number; is_old: boolean; has_erased: boolean }

/**
 * Maintains the access log by the clock: indexes it, deletes entries older than the retention, and removes erased
 * entities from entries that were stored after their erasure.
 */
export function accessFollower({ retentionDays, nowMs = Date.now, pausePerWork = 4 }: AccessFollowerOptions): Follower {
  const settings = { retentionDays, nowMs, pausePerWork }
  return {
    name: 'accesses',
    isForEveryOrganization: true,
    isScheduled: true,
    maxConcurrent: 1,
    work: task => workThrough(task, settings),
    passOver: async (db, news) => {
      const ids = news.map(({ organization_id }) => organization_id)
      const found = await findWork(db, ids, settings)
      return passOverIdle(news, found.filter(hasWork), ({ after }) => restUntil(after, nowMs() + intervalMs))
    },
  }
}

const hasWork = ({ count, is_old, has_erased }: Work) => count >= minBatches || is_old || has_erased

/** The first id that the retention keeps. */
const firstKept = ({ retentionDays, nowMs }: Settings) => idsOfTime(nowMs() - retentionDays * dayMs, nowMs()).first

const erasedSince = ({ nowMs }: Settings) => new Date(nowMs() - repeatErasureMs).toISOString()

const findWork = (db: Pick<Database, 'query'>, organizations: readonly number[], settings: Settings) =>
  db.query<Work>(findAccessWorkSql, [organizations, firstKept(settings), minBatches, erasedSince(settings)])

async function workThrough(task: Task, settings: Settings): Promise<Progress> {
  const { db, organization_id, signal } = task
  const { nowMs } = settings
  const [work] = await findWork(db, [organization_id], settings)
  if (work?.has_erased) {
    const erased = await db.query<{ id: string }>(readErasedSql, [organization_id, erasedSince(settings), maxErased])
    for (const { id } of erased) if (!signal.aborted) await forgetAccesses(task, [id])
  }
  if (work && work.count >= minBatches) await indexBatches(task, work.last_id, nowMs())
  if (work?.is_old) await deleteOld(task, settings)
  return restUntil(task.after, nowMs() + intervalMs)
}

/**
 * Adds the settled batches after an id to the index, in parts. If the last batches are too few for a part, they wait
 * for the next one.
 */
async function indexBatches(task: Task, after: number, nowMs: number): Promise<void> {
  const { db, organization_id, signal } = task
  const settled = { after, until: idsOfTime(0, nowMs - settledMs).last }
  for (let hasMore = true; hasMore && !signal.aborted; ) {
    const part = await readPart(task, settled)
    if (part.batchCount < minBatches) return
    await db.query(insertIndexSql, [organization_id, part.lastId, part.buckets.map(toPairs)])
    settled.after = part.lastId
    hasMore = part.hasMore
  }
}

/** Reads the batches of the next part of the index, as alternating hashes and batch ids for each bucket. */
async function readPart({ db, organization_id }: Reading, { after, until }: { after: number; until: number }) {
  const buckets = Array.from({ length: bucketCount }, (): number[] => [])
  let [lastId, batchCount, pairCount, hasMore] = [after, 0, 0, true]
  while (hasMore && batchCount < maxBatches && pairCount < maxPairs) {
    const values = [organization_id, lastId, until, minBatches]
    const batches = await db.query<{ id: number; hashes: Buffer }>(readHashesSql, values)
    for (const { id, hashes } of batches)
      for (const hash of new Set(hashesOf(hashes))) {
        buckets[bucketOf(hash)]!.push(hash, id)
        pairCount += 1
      }
    batchCount += batches.length
    lastId = batches.at(-1)?.id ?? lastId
    hasMore = batches.length === minBatches
  }
  return { buckets, lastId, batchCount, hasMore }
}

async function deleteOld({ db, organization_id, signal }: Task, settings: Settings): Promise<void> {
  const before = firstKept(settings)
  await inSets(signal, settings.pausePerWork, async () => {
    const [gone] = await db.query<{ count: number }>(deleteBatchesSql, [organization_id, before, batchesPerDeletion])
    db.observer?.retentionEnded('accesses', gone!.count)
    return gone!.count < batchesPerDeletion
  })
  await db.query(deleteIndexSql, [organization_id, before])
}
