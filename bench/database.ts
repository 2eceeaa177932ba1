import pg from 'pg'

/** Runs `work` on a connection of its own. */
export async function inDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  // A server that is stopped meanwhile fails the statement; that it also says so here must not end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Of the server: `18.4`. */
export async function serverVersion({ url }: { url: string }): Promise<string> {
  const { rows } = await inDatabase(url, client => client.query<{ server_version: string }>('show server_version'))
  return rows[0]!.server_version
}

/**
 * Cleans up behind what was written. Else the next row finds autovacuum at work, and each of its first reads of a changed row marks it,
 * with a page of WAL: reads of a million people after four rows of writes were a third slower than before them.
 */
export async function settle({ url }: { url: string }): Promise<void> {
  await inDatabase(url, client => client.query('vacuum (analyze)'))
}
