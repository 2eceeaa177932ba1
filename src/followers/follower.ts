import { setTimeout as pause } from 'node:timers/promises'
import { announceCommit } from '../db/commit-events.ts'
import type { Context } from '../db/context.ts'
import type { Database, Transaction } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import { beginFollowerSql, readPositionSql } from './sql.ts'

/**
 * A reader of the change log that works in the background. It has a position in each organization, where one process at
 * a time works for it. Either the work commits together with the position ({@link Task.advance}), or repeating it
 * changes nothing.
 */
export type Follower = {
  name: string
  /** Whether every organization has this follower. If not, its module inserts and deletes the rows of `followers`. */
  isForEveryOrganization: boolean
  /** Whether the follower works on a schedule, so that its position does not show its lag. */
  isScheduled?: boolean
  /** The maximum number of organizations, or rows, that one process works for at a time. */
  maxConcurrent: number
  /**
   * Processes the changes after `task.after` up to `task.head`. When the signal aborts, it ends soon and returns its
   * progress.
   */
  work(task: Task): Promise<Progress>
  /**
   * Finds the organizations without work among many, by one statement that stores nothing, and returns the progress of
   * each. They need no lease, and their positions are stored later (pass-over.ts). The other organizations get tasks.
   * If this fails, all of them do.
   */
  passOver?(db: Database, news: readonly News[]): Promise<ReadonlyMap<News, Progress>>
}

/**
 * The changes after `after` up to `head`, which a follower has not processed in an organization. `is_due` says that its
 * time to wake up has come.
 */
export type News = { organization_id: number; id: number; after: number; head: number; is_due: boolean }

/** The work of one follower in one organization, under a lease. */
export type Task = Context & {
  id: number
  after: number
  head: number
  /** Aborts when the process stops, or when another process may have taken over. */
  signal: Signal
  /** Whether this process still holds the lease. */
  isHeld(): boolean
  /** Prevents other processes from taking over until the transaction ends. Throws {@link LeaseLost}. */
  hold(tx: Transaction): Promise<void>
  /** Stores the position in the transaction of the work. Throws {@link LeaseLost}. */
  advance(tx: Transaction, sequence: number): Promise<void>
}

/** The position that the work has reached. Times are milliseconds of Unix time. */
export type Progress = {
  sequence: number
  /** The earliest time of the next work. */
  notBeforeMs?: number | undefined
  /** The time of the next work, even without news. */
  wakeAtMs?: number | undefined
}

/** Skips the organizations that are not busy. */
export function passOverIdle(
  news: readonly News[],
  busy: readonly Pick<News, 'organization_id'>[],
  progressOf: (idle: News) => Progress,
): Map<News, Progress> {
  const ids = new Set(busy.map(({ organization_id }) => organization_id))
  return new Map(news.filter(({ organization_id }) => !ids.has(organization_id)).map(each => [each, progressOf(each)]))
}

/** Skips the organizations that are not due to wake up. A follower with this rule has no work from changes. */
export const passOverUntilDue: NonNullable<Follower['passOver']> = async (_, news) =>
  new Map(news.filter(({ is_due }) => !is_due).map(each => [each, { sequence: each.head }]))

/** The progress of a follower that rests until a time, and then works again. */
export const restUntil = (sequence: number, ms: number): Progress => ({ sequence, notBeforeMs: ms, wakeAtMs: ms })

/**
 * Runs sets until one of them reports that it was the last, or until the process stops. After each set, it pauses for
 * `pausePerWork` times the duration of the set, to leave the database to writes.
 */
export async function inSets(signal: Signal, pausePerWork: number, runSet: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted) {
    const startedMs = performance.now()
    if (await runSet()) return
    if (pausePerWork > 0) await pause((performance.now() - startedMs) * pausePerWork)
  }
}

/** The first request waits at most this long for the follower, which is enough for a small organization. */
const maxWaitMs = 1_000
const pollMs = 50

type Position = { head: number; sequence: number | null; is_begun: boolean }

/**
 * Starts a follower for an organization that has it on demand, from the first change of the log on, and waits a moment
 * for it. Organizations that never need its results pay nothing for it.
 */
export async function beginFollower(context: Context, name: string, signal: Signal): Promise<void> {
  const { db, organization_id } = context
  const readPosition = async () => (await db.query<Position>(readPositionSql, [organization_id, name], signal))[0]!
  const { head, is_begun } = await readPosition()
  if (is_begun) return
  await db.query(beginFollowerSql, [organization_id, name], signal)
  announceCommit(context)
  for (let waitedMs = 0; waitedMs < maxWaitMs; waitedMs += pollMs) {
    if (((await readPosition()).sequence ?? 0) >= head) return
    await pause(pollMs)
    signal.throwIfAborted()
  }
}
