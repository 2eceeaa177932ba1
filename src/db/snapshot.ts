import { type CopyingOut, copyTo, type TakeRow } from './copy.ts'
import type { Database, Row, Statement } from './db.ts'
import { runPrepared } from './prepared.ts'

/** Reads that all see the database as it stood at one moment, on a connection of their own. */
export type Snapshot = {
  query<R extends Row = Row>(statement: Statement, values: unknown[]): Promise<R[]>
  /** Runs a `copy … to stdout`, see {@link copyTo}. */
  copy(statement: Statement, take: TakeRow): CopyingOut
  /** Ends the connection, and what is running on it. */
  close(): Promise<void>
}

/** Opens a snapshot. Whoever is given one must close it. */
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
