import pg from 'pg'
import { inject } from 'vitest'

/** Lets a test database accept connections, or refuse them and close those it has, as if its server was away. */
export async function setConnectable(url: string, isConnectable: boolean): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const client = new pg.Client({ connectionString: inject('postgresAdminUrl') })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(`alter database ${name} allow_connections ${isConnectable}`)
    if (!isConnectable)
      await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  } finally {
    await client.end()
  }
}
