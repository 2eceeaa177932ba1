import type { Database } from '../db/db.ts'
import { shareFor } from './single-flight.ts'
import { estimateChangesSql } from './sql.ts'

/**
 * The result of one health check. `changeLogRows` is an estimate, undefined until the first answer. `oldestTransactionSeconds` is
 * undefined without an answer.
 */
export type DatabaseHealth = {
  up: boolean
  changeLogRows: number | undefined
  oldestTransactionSeconds: number | undefined
}

type Estimate = { rows: number; transaction_seconds: number }

const timeoutMs = 1_000
/** The metrics need no token. Caching the result limits the queries that they cause to one per second. */
const cacheMs = 1_000

/**
 * Returns a function that checks the database at most once a second; calls in between share the result. A database
 * that has answered nothing within a second is down, even if the statement itself stays stuck for longer. A database that answers
 * other statements while the check waits for a connection is up.
 */
export function createDatabaseHealth(db: Database, answeredAt: () => number): () => Promise<DatabaseHealth> {
  let lastRows: number | undefined
  return shareFor(cacheMs, async () => {
    const estimate = await estimateInTime(db)
    lastRows = estimate?.rows ?? lastRows
    const up = estimate !== undefined || performance.now() - answeredAt() < timeoutMs
    return { up, changeLogRows: lastRows, oldestTransactionSeconds: estimate?.transaction_seconds }
  })
}

/** The estimate, or undefined if the database does not answer in time. */
async function estimateInTime(db: Database): Promise<Estimate | undefined> {
  const answering = db.query<Estimate>(estimateChangesSql, [], AbortSignal.timeout(timeoutMs)).then(
    ([row]) => row,
    () => undefined,
  )
  const waiting = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => waiting.resolve(undefined), timeoutMs)
  return Promise.race([answering, waiting.promise]).finally(() => clearTimeout(timer))
}
