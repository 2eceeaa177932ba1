import type { Signal } from '../process/signal.ts'
import { type CopyingOut, copyTo, type TakeRow } from './copy.ts'
import type { Database, Row, Statement } from './db.ts'
import { runPrepared } from './prepared.ts'

/** A connection whose reads all see the database at one point in time. */
export type Snapshot = {
  query<R extends Row = Row>(statement: Statement, values: unknown[]): Promise<R[]>
  /** Runs a `copy … to stdout`, see {@link copyTo}. */
  copy(statement: Statement, take: TakeRow): CopyingOut
  /** Closes the connection, which ends the running statement. */
  close(): Promise<void>
}

/** Opens a snapshot. The caller must close it. */
export async function openSnapshot(db: Database): Promise<Snapshot> {
  const client = await db.connect()
  const close = () => client.end()
  try {
    await client.query('begin transaction isolation level repeatable read, read only')
  } catch (error) {
    await close()
    throw error
  }
  return {
    query: async (statement, values) => (await runPrepared(client, statement, values)).rows as never[],
    copy: ({ text }, take) => copyTo(client, text, take),
    close,
  }
}

/** Closes the connection when the signal aborts. Returns a function that closes it at the end, with `close`. */
export function closeAtAbort(snapshot: Snapshot, close: () => Promise<void>, signal: Signal): () => Promise<void> {
  const cut = () => void snapshot.close()
  signal.addEventListener('abort', cut, { once: true })
  return () => {
    signal.removeEventListener('abort', cut)
    return close()
  }
}
