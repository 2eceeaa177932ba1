import type pg from 'pg'
import type { Database, Row, Statement } from './db.ts'

/** Reads that all see the database as it stood at one moment, on a connection of their own. */
export type Snapshot = {
  query<R extends Row = Row>(statement: Statement, values: unknown[]): Promise<R[]>
  /** Ends the connection, and a statement that is running on it. */
  close(): Promise<void>
}

/** Opens a snapshot. Whoever is given one must close it. */
export async function openSnapshot(db: Database): Promise<Snapshot> {
  const client = await db.connect()
  try {
    await client.query('begin transaction isolation level repeatable read, read only')
  } catch (error) {
    await client.end()
    throw error
  }
  return {
    query: async ({ name, text }, values) => {
      const { rows }: pg.QueryResult = await client.query({ name, text, values })
      return rows as never[]
    },
    close: () => client.end(),
  }
}
