import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { SlowFirst } from '../support/sequencer.ts'

/** The files that compare measured times with limits, which assume an otherwise idle machine. They run one at a time. */
const measuring = ['database', 'disk', 'pool', 'slow', 'webhooks'].map(name => `test/faults/${name}.test.ts`)

const root = fileURLToPath(new URL('../..', import.meta.url))
const options = {
  root,
  globalSetup: ['test/support/temporary-files.ts', 'test/support/postgres.ts'],
  pool: 'forks' as const,
  // As in the other tiers: Node.js runs the files, and a worker loads the modules once for all its files.
  isolate: false,
  experimental: { viteModuleRunner: false, nodeLoader: false },
  testTimeout: 120_000,
  hookTimeout: 120_000,
  maxConcurrency: 4,
}

export default defineConfig({
  test: {
    root,
    disableConsoleIntercept: true,
    sequence: { sequencer: SlowFirst },
    reporters: ['verbose', './test/support/summary.ts'],
    projects: [
      {
        test: {
          ...options,
          name: 'others',
          include: ['test/faults/*.test.ts'],
          exclude: measuring,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...options,
          name: 'measuring',
          include: measuring,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
