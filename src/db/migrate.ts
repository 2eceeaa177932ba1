import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { runner } from 'node-pg-migrate'
import pg from 'pg'

const directory = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** The names of all migrations that this version has, in order. */
export async function listMigrations(): Promise<string[]> {
  const files = (await readdir(directory)).filter(file => /^\d+_.*\.sql$/.test(file))
  return files.map(file => file.replace(/\.sql$/, '')).sort()
}

/**
 * Brings the database to the newest migration and returns the names of those that ran. An advisory lock makes
 * servers that start together take turns. Forward only: plain SQL from `migrations/`, each file in a transaction.
 * On a read-only server it throws, unless there is nothing to do. `count` runs only so many of those that are pending.
 */
export async function migrate(url: string, count = Number.POSITIVE_INFINITY): Promise<string[]> {
  try {
    return await runMigrations(url, count)
  } catch (cause) {
    // The runner's error has no code.
    if (!(await isReadOnly(url).catch(() => false))) throw cause
    const message =
      'The database is read-only, as a standby is, and its tables are not of this version: migrate the primary first.'
    throw new Error(message, { cause })
  }
}

async function isReadOnly(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query(`select current_setting('transaction_read_only')::boolean as read_only`)
    return rows[0].read_only
  } finally {
    await client.end().catch(() => {})
  }
}

async function runMigrations(url: string, count: number): Promise<string[]> {
  const ran = await runner({
    databaseUrl: url,
    dir: directory,
    ignorePattern: 'schema\\.sql',
    direction: 'up',
    count,
    migrationsTable: 'migrations',
    advisoryLockMode: 'wait',
    singleTransaction: true,
    log: () => {},
  })
  return ran.map(migration => migration.name)
}
