import type { Database } from '../db/db.ts'
import { renewLeaseSql } from './sql.ts'

/** Another process works for the follower, because this one did not renew its lease in time. */
export class LeaseLost extends Error {}

/** The key of the row of a follower, and who works for it. */
export type LeaseRow = [organization_id: number, name: string, id: number, owner: string]

export type Lease = { isHeld(): boolean; end(): void }

/** Renews a lease until its end. Aborts the work if that fails, before another process can take over. */
export function keepLease(
  db: Database,
  row: LeaseRow,
  lengthMs: number,
  sentMs: number,
  ending: AbortController,
): Lease {
  let validUntilMs = sentMs + lengthMs
  let isOver = false
  const lose = () => {
    isOver = true
    ending.abort(new LeaseLost('the lease was not renewed in time'))
  }
  const isHeld = () => !isOver && performance.now() < validUntilMs
  const renew = async () => {
    const renewedMs = performance.now()
    const rows = await db.query(renewLeaseSql, [...row, lengthMs]).catch(() => undefined)
    if (rows?.length === 0) lose()
    else if (rows) validUntilMs = renewedMs + lengthMs
  }
  const timer = setInterval(() => {
    if (!isHeld()) lose()
    else void renew()
  }, lengthMs / 3)
  timer.unref()
  return {
    isHeld,
    end: () => {
      isOver = true
      clearInterval(timer)
    },
  }
}
