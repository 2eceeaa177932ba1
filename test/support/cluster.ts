import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { readDistribution } from '../../src/db/distribution.ts'
import type {} from './postgres.ts'

/** Checks that KITH_CLUSTER_URL names a database that `kith distribute` has distributed. All test files use it. */
export default async function setup(project: TestProject): Promise<void> {
  const url = process.env.KITH_CLUSTER_URL
  if (!url)
    throw new Error('Set KITH_CLUSTER_URL to a database that kith distribute has distributed, as docs/cluster.md says.')
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  const distribution = await readDistribution(client).finally(() => client.end())
  if (distribution?.pending.length !== 0 || distribution.distributed.length === 0)
    throw new Error('The database of KITH_CLUSTER_URL is not distributed. Run kith distribute on it.')
  project.provide('postgresAdminUrl', url)
  project.provide('postgresTemplate', '')
}
