import type { Database } from '../db/db.ts'
import { estimateChangesSql } from './sql.ts'

/** What one look at the database shows. */
export type DatabaseHealth = { up: boolean; changeLogRows: number | undefined }

const patienceMs = 1_000
/** Anybody may ask for the metrics, who then asks no more of the database than this. */
const freshMs = 1_000

/**
 * What gives a look at the database that is no older than a second; whoever asks meanwhile gets the same. A database
 * that has answered nothing within a second is down, even where the statement itself is stuck for longer. One that answers
 * others, while this look waits for a connection, is not.
 */
export function createDatabaseHealth(db: Database, answeredAt: () => number): () => Promise<DatabaseHealth> {
  let last: { lookedMs: number; outlook: Promise<DatabaseHealth> } | undefined
  let knownRows: number | undefined
  const look = async (): Promise<DatabaseHealth> => {
    const answer = await answerInTime(db)
    knownRows = answer ?? knownRows
    const answers = answer !== undefined || performance.now() - answeredAt() < patienceMs
    return { up: answers, changeLogRows: knownRows }
  }
  return () => {
    const nowMs = performance.now()
    if (!last || nowMs - last.lookedMs > freshMs) last = { lookedMs: nowMs, outlook: look() }
    return last.outlook
  }
}

/** The estimate; undefined without an answer. */
async function answerInTime(db: Database): Promise<number | undefined> {
  const answering = db.query<{ rows: number }>(estimateChangesSql, [], AbortSignal.timeout(patienceMs)).then(
    ([row]) => row?.rows,
    () => undefined,
  )
  const waiting = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => waiting.resolve(undefined), patienceMs)
  return Promise.race([answering, waiting.promise]).finally(() => clearTimeout(timer))
}
