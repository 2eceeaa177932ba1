import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { runner } from 'node-pg-migrate'

const directory = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** The names of all migrations that this version has, in order. */
export async function listMigrations(): Promise<string[]> {
  const files = (await readdir(directory)).filter(file => /^\d+_.*\.sql$/.test(file))
  return files.map(file => file.replace(/\.sql$/, '')).sort()
}

/**
 * Brings the database to the newest migration and returns the names of those that ran. An advisory lock makes
 * servers that start together take turns. Forward only: plain SQL from `migrations/`, each file in a transaction.
 */
export async function migrate(url: string): Promise<string[]> {
  const ran = await runner({
    databaseUrl: url,
    dir: directory,
    ignorePattern: 'schema\\.sql',
    direction: 'up',
    migrationsTable: 'migrations',
    advisoryLockMode: 'wait',
    singleTransaction: true,
    log: () => {},
  })
  return ran.map(migration => migration.name)
}
