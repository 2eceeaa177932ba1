import { setTimeout as pause } from 'node:timers/promises'
import { announceCommit } from '../db/commit-events.ts'
import type { Context } from '../db/context.ts'
import type { Database, Transaction } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import { beginFollowerSql, readPositionSql } from './sql.ts'

/**
 * A reader of the change log that works behind the writes. In each organization it has a position, and one process at a time works
 * for it. Either the work commits together with the position ({@link Task.advance}), or doing it twice changes nothing.
 */
export type Follower = {
  name: string
  /** Whether every organization has this follower. Otherwise its module inserts and deletes the rows of `followers`. */
  isForEveryOrganization: boolean
  /** Whether the follower works by the clock, so that its position says nothing about how far it is behind. */
  isScheduled?: boolean
  /** How many organizations, or rows, one process works for at a time. */
  maxConcurrent: number
  /** Works through the changes after `task.after` up to `task.head`. When the signal aborts, it ends soon and returns how far it is. */
  work(task: Task): Promise<Progress>
  /**
   * Tells of many organizations, by one statement for all that stores nothing, which have nothing to do, and returns the progress of each
   * of these. No lease is taken for them, and their positions are stored later (pass-over.ts). The others are worked on; so are all of
   * them if it fails.
   */
  passOver?(db: Database, news: readonly News[]): Promise<ReadonlyMap<News, Progress>>
}

/** The changes after `after` up to `head`, which a follower has not seen in an organization. `is_due` says that it is time to wake up. */
export type News = { organization_id: number; id: number; after: number; head: number; is_due: boolean }

/** The work of one follower in one organization, under a lease. */
export type Task = Context & {
  id: number
  after: number
  head: number
  /** Aborts when the process stops, or another one may have taken over. */
  signal: Signal
  /** Whether no other process can have taken over. */
  isHeld(): boolean
  /** Keeps other processes from taking over until the transaction ends. Throws {@link LeaseLost}. */
  hold(tx: Transaction): Promise<void>
  /** Stores the position in the transaction of the work. Throws {@link LeaseLost}. */
  advance(tx: Transaction, sequence: number): Promise<void>
}

/** The position that the work has reached. Times are milliseconds of Unix time. */
export type Progress = {
  sequence: number
  /** The next work begins no earlier. */
  notBeforeMs?: number | undefined
  /** The next work begins then, even without news. */
  wakeAtMs?: number | undefined
}

/** Passes over the organizations that are not busy. */
export function passOverIdle(
  news: readonly News[],
  busy: readonly Pick<News, 'organization_id'>[],
  progressOf: (idle: News) => Progress,
): Map<News, Progress> {
  const ids = new Set(busy.map(({ organization_id }) => organization_id))
  return new Map(news.filter(({ organization_id }) => !ids.has(organization_id)).map(each => [each, progressOf(each)]))
}

/** Passes over the organizations whose time to wake up has not come. No change gives the follower something to do. */
export const passOverUntilDue: NonNullable<Follower['passOver']> = async (_, news) =>
  new Map(news.filter(({ is_due }) => !is_due).map(each => [each, { sequence: each.head }]))

/** The progress of a follower that works again at a time, and not before. */
export const restUntil = (sequence: number, ms: number): Progress => ({ sequence, notBeforeMs: ms, wakeAtMs: ms })

/**
 * Runs sets until one of them returns that it was the last, or the process stops. After each it pauses for `pausePerWork` times as long as the
 * set took, so that writes keep the database.
 */
export async function inSets(signal: Signal, pausePerWork: number, runSet: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted) {
    const startedMs = performance.now()
    if (await runSet()) return
    if (pausePerWork > 0) await pause((performance.now() - startedMs) * pausePerWork)
  }
}

/** The first request waits this long for the follower, which is enough for a small organization. */
const maxWaitMs = 1_000
const pollMs = 50

type Position = { head: number; sequence: number | null; is_begun: boolean }

/**
 * Lets a follower work for an organization that has it on demand, from the first change of the log on, and waits for it a moment.
 * Organizations that never ask for what it computes pay nothing for it.
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
