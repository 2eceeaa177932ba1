import { randomBytes } from 'node:crypto'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../src/db/migrate.ts'
import {
  closeOnServers,
  createOnServers,
  distributeTables,
  dropOnServers,
  listOnServers,
  readServers,
} from './cluster-database.ts'
import { testDatabasePrefix } from './postgres.ts'

/**
 * Prepares a distributed database on every server of the cluster whose coordinator KITH_CLUSTER_URL names. Each test file copies it.
 * Returns the teardown.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const url = process.env.KITH_CLUSTER_URL
  if (!url)
    throw new Error('Set KITH_CLUSTER_URL to a database on the coordinator of a cluster, as docs/cluster.md says.')
  const servers = await readServers(url)
  const template = `kith_template_${randomBytes(6).toString('hex')}`
  try {
    const templateUrl = await createOnServers(servers, template)
    await migrate(templateUrl)
    await distributeTables(templateUrl)
    await closeOnServers(servers, template)
  } catch (cause) {
    await dropOnServers(servers, template).catch(() => {})
    const list = servers.map(({ host, port }) => `${host}:${port}`).join(', ')
    throw new Error(`The tests need databases of their own on ${list}: ${(cause as Error).message}`, { cause })
  }
  project.provide('postgresAdminUrl', url)
  project.provide('postgresTemplate', template)
  return async () => {
    for (const name of await listOnServers(servers, testDatabasePrefix(template))) await dropOnServers(servers, name)
    await dropOnServers(servers, template)
  }
}
