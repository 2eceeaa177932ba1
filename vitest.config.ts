import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { SlowFirst } from './test/support/sequencer.ts'

/**
 * The second tier, `npm run test:system`: promises about processes, signals, servers of their own and their standbys, random requests,
 * plans among many people, every page in every theme and width, and the files that take longest, so that `npm test` takes less
 * than five minutes on two processors.
 */
export const systemTests = [
  'test/{consent-lives,explain,hostile,operations,process,tenants,upgrades}/**/*.test.ts',
  '{src,cli,client,console,scripts,test}/**/*.system.test.ts',
]

export const config = {
  include: [
    'src/**/*.test.ts',
    'cli/**/*.test.ts',
    'transfer/**/*.test.ts',
    'test/**/*.test.ts',
    'scripts/**/*.test.ts',
    'client/**/*.test.ts',
    'console/test/**/*.test.ts',
    'bench/*.test.ts',
  ],
  // These tests have commands of their own: npm run test:faults, test:cluster and test:packed.
  exclude: ['**/node_modules/**', 'test/faults/**', 'test/cluster/**', 'test/packed/**', ...systemTests],
  globalSetup: ['test/support/temporary-files.ts', 'test/support/postgres.ts'],
  pool: 'forks',
  // Node.js runs the files as it runs the service, and a worker loads the modules once for all its files. The modules
  // of src/ keep no state of their own: it belongs to a database object or to a service.
  isolate: false,
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // Tests wait for deadlines, drains and processes: with one file more than cores, a run on two cores took 15
  // minutes for 1,300 s of processor time.
  maxWorkers: availableParallelism() + 2,
  sequence: { sequencer: SlowFirst },
  reporters: ['default', './test/support/summary.ts'],
  testTimeout: 120_000,
  // The default of one second is too short for an event on a busy machine.
  expect: { poll: { timeout: 10_000 } },
  hookTimeout: 60_000,
}

export default defineConfig({ test: config })
