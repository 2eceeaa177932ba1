import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import type {} from './postgres.ts'

/**
 * Creates a database on the run's PostgreSQL: migrated and empty, or without tables. `drop` removes it and closes its
 * connections.
 */
export async function createTestDatabase({ tables = true } = {}): Promise<{ url: string; drop(): Promise<void> }> {
  const clusterUrl = process.env.KITH_CLUSTER_URL
  // A database of a cluster takes seconds to create. The test files share one, and use organizations of their own.
  if (clusterUrl && tables) return { url: clusterUrl, drop: async () => {} }
  const name = `kith_test_${randomBytes(8).toString('hex')}`
  const adminUrl = inject('postgresAdminUrl')
  await administer(adminUrl, client =>
    tables ? copyTemplate(client, name) : client.query(`create database ${name} template template0`),
  )
  return {
    url: urlOfDatabase(adminUrl, name),
    drop: () => administer(adminUrl, client => client.query(`drop database if exists ${name} with (force)`)),
  }
}

async function copyTemplate(client: pg.Client, name: string) {
  const template = inject('postgresTemplate')
  for (;;) {
    try {
      await client.query(`create database ${name} template ${template}`)
      return
    } catch (error) {
      // object_in_use: another connection, such as autovacuum, uses the template for a moment.
      if ((error as { code?: string }).code !== '55006') throw error
      await setTimeout(50)
    }
  }
}

async function administer(url: string, work: (client: pg.Client) => Promise<unknown>) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  await work(client).finally(() => client.end())
}
