import { defineConfig } from 'vitest/config'

// Files run one at a time, because the tests measure times that assume an otherwise idle machine.
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/faults/*.test.ts'],
    globalSetup: ['test/support/temporary-files.ts', 'test/support/postgres.ts'],
    pool: 'forks',
    fileParallelism: false,
    disableConsoleIntercept: true,
    reporters: ['verbose', './test/support/summary.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxConcurrency: 4,
  },
})
