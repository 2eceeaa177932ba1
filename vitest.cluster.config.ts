import { defineConfig } from 'vitest/config'
import { config } from './vitest.config.ts'

/**
 * `npm run test:cluster`: the tests over HTTP on a cluster of Citus, and test/cluster, which kills its servers. KITH_CLUSTER_URL names a
 * database of its coordinator. The tests of src/entities/write look at the statements and the locks of one server.
 */
export default defineConfig({
  test: {
    ...config,
    include: [
      'src/{people,records,stacks,relationships,consents,attributes,observed,changes,segments,search,schema}/*.test.ts',
      'src/{identity,rights,filters,links,ledger,webhooks,transfer,idempotency}/*.test.ts',
      'src/entities/*.test.ts',
      'test/cluster/*.test.ts',
    ],
    exclude: ['**/node_modules/**'],
    globalSetup: ['test/support/temporary-files.ts', 'test/support/cluster.ts'],
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
