import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { copyDatabase, copyOnServers, dropOnServers, readServers } from './cluster-database.ts'
import { testDatabasePrefix } from './postgres.ts'

/**
 * Creates a database on the run's PostgreSQL: migrated and empty, or without tables. `drop` removes it and closes its
 * connections.
 */
export async function createTestDatabase({ tables = true } = {}): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `${testDatabasePrefix(inject('postgresTemplate'))}_${randomBytes(6).toString('hex')}`
  const adminUrl = inject('postgresAdminUrl')
  if (process.env.KITH_CLUSTER_URL && tables) return copyDistributed(adminUrl, name)
  await administer(adminUrl, client =>
    tables
      ? copyDatabase(client, name, inject('postgresTemplate'))
      : client.query(`create database ${name} template template0`),
  )
  return {
    url: urlOfDatabase(adminUrl, name),
    drop: () => administer(adminUrl, client => client.query(`drop database if exists ${name} with (force)`)),
  }
}

/** Copies the distributed database of the run on every server of the cluster. */
async function copyDistributed(adminUrl: string, name: string) {
  const servers = await readServers(adminUrl)
  const url = await copyOnServers(servers, name, inject('postgresTemplate'))
  return { url, drop: () => dropOnServers(servers, name) }
}

async function administer(url: string, work: (client: pg.Client) => Promise<unknown>) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  await work(client).finally(() => client.end())
}
