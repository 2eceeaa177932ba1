import type pg from 'pg'
import type { Database, Row, Statement } from './db.ts'

/** Reads that all see the database as it stood at one moment, on connections of their own. */
export type Snapshot = {
  /** Reads on one connection after the other: as many go on at once as there are. */
  query<R extends Row = Row>(statement: Statement, values: unknown[]): Promise<R[]>
  /** Ends the connections, and the statements that are running on them. */
  close(): Promise<void>
}

const begin = 'begin transaction isolation level repeatable read, read only'

/** Opens a snapshot on so many connections. Whoever is given one must close it. */
export async function openSnapshot(db: Database, connections: number): Promise<Snapshot> {
  const opening = await Promise.allSettled(Array.from({ length: connections }, () => db.connect()))
  const clients = opening.flatMap(opened => (opened.status === 'fulfilled' ? opened.value : []))
  const close = async () => void (await Promise.all(clients.map(client => client.end())))
  try {
    for (const opened of opening) if (opened.status === 'rejected') throw opened.reason
    const [first, ...others] = clients
    await first!.query(begin)
    const exported = await first!.query<{ name: string }>('select pg_export_snapshot() as name')
    // SET takes no parameters; the name is PostgreSQL's own.
    const share = `${begin}; set transaction snapshot ${first!.escapeLiteral(exported.rows[0]!.name)}`
    await Promise.all(others.map(client => client.query(share)))
  } catch (error) {
    await close()
    throw error
  }
  let turn = 0
  return {
    query: async ({ name, text }, values) => {
      const client = clients[turn++ % clients.length]!
      const { rows }: pg.QueryResult = await client.query({ name, text, values })
      return rows as never[]
    },
    close,
  }
}
