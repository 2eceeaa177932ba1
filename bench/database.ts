import pg from 'pg'

/** Runs `work` on a new connection, and closes it. */
export async function inDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  // If the server stops, the statement fails. The same error as an event must not end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Reads the version of the PostgreSQL server, such as `18.4`. */
export async function serverVersion({ url }: { url: string }): Promise<string> {
  const { rows } = await inDatabase(url, client => client.query<{ server_version: string }>('show server_version'))
  return rows[0]!.server_version
}
