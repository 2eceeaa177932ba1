import { setTimeout as pause } from 'node:timers/promises'
import { announceCommit } from '../db/commit-events.ts'
import type { Context } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import { beginFollowerSql, readPositionSql } from './sql.ts'

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
