import { awaitPipelined, type Database } from '../db/db.ts'
import type { Follower, Progress } from './follower.ts'
import { insertFollowerSql, passOverSql } from './sql.ts'
import { type Found, timeOf } from './tasks.ts'

/** How many positions one transaction advances. */
const perTransaction = 100

/**
 * Advances a follower in the organizations where it has nothing to do: they share the statement that finds this out, a round trip and a
 * commit. Returns these organizations, and the others.
 */
export async function passOver(
  db: Database,
  follower: Follower,
  found: readonly Found[],
  { nowMs, report }: { nowMs: () => number; report: (error: unknown) => void },
): Promise<{ passed: readonly Found[]; others: readonly Found[] }> {
  if (!follower.passOver || found.length === 0) return { passed: [], others: found }
  try {
    const progresses = await follower.passOver(db, found)
    // Two processes that insert rows in one order wait for each other, but do not deadlock.
    const passed = found.filter(each => progresses.has(each)).sort((a, b) => a.organization_id - b.organization_id)
    for (let first = 0; first < passed.length; first += perTransaction) {
      const stretch = passed.slice(first, first + perTransaction)
      const missing = stretch.filter(({ missing }) => missing)
      await db.transaction(tx =>
        awaitPipelined([
          ...missing.map(({ organization_id }) => tx.query(insertFollowerSql, [organization_id, follower.name])),
          ...stretch.map(each => tx.query(passOverSql, valuesOf(each, progresses.get(each)!, nowMs()))),
        ]),
      )
    }
    return { passed, others: found.filter(each => !progresses.has(each)) }
  } catch (error) {
    report(error)
    return { passed: [], others: found }
  }
}

const valuesOf = ({ organization_id, name, id, after, is_due }: Found, progress: Progress, nowMs: number) => [
  ...[organization_id, name, id, after, is_due, progress.sequence],
  ...[progress.notBeforeMs, progress.wakeAtMs, nowMs].map(timeOf),
]
