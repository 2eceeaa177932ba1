import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** The files that compare measured times with limits, which assume an otherwise idle machine. They run one at a time. */
const measuring = ['database', 'disk', 'pool', 'slow', 'webhooks'].map(name => `test/faults/${name}.test.ts`)

const root = fileURLToPath(new URL('../..', import.meta.url))
const options = {
  root,
  globalSetup: ['test/support/temporary-files.ts', 'test/support/postgres.ts'],
  pool: 'forks' as const,
  testTimeout: 120_000,
  hookTimeout: 120_000,
  maxConcurrency: 4,
}

export default defineConfig({
  test: {
    root,
    disableConsoleIntercept: true,
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
