import type { Database } from '../db/db.ts'
import { estimate_changes } from './sql.ts'

/** What one look at the database shows. */
export type Outlook = { up: boolean; change_log_rows: number | undefined }

const patience_ms = 1_000
/** Anybody may ask for the metrics, who then asks no more of the database than this. */
const fresh_ms = 1_000

/**
 * What gives a look at the database that is no older than a second; whoever asks meanwhile gets the same. A database
 * that has answered nothing within a second is down, even where the statement itself is stuck for longer. One that answers
 * others, while this look waits for a connection, is not.
 */
export function createOutlook(db: Database, answeredAt: () => number): () => Promise<Outlook> {
  let last: { looked_ms: number; outlook: Promise<Outlook> } | undefined
  let known_rows: number | undefined
  const look = async (): Promise<Outlook> => {
    const answer = await answerInTime(db)
    known_rows = answer ?? known_rows
    const answers = answer !== undefined || performance.now() - answeredAt() < patience_ms
    return { up: answers, change_log_rows: known_rows }
  }
  return () => {
    const now_ms = performance.now()
    if (!last || now_ms - last.looked_ms > fresh_ms) last = { looked_ms: now_ms, outlook: look() }
    return last.outlook
  }
}

/** The estimate; undefined without an answer. */
async function answerInTime(db: Database): Promise<number | undefined> {
  const answering = db.query<{ rows: number }>(estimate_changes, [], AbortSignal.timeout(patience_ms)).then(
    ([row]) => row?.rows,
    () => undefined,
  )
  const waiting = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => waiting.resolve(undefined), patience_ms)
  return Promise.race([answering, waiting.promise]).finally(() => clearTimeout(timer))
}
