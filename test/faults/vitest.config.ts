import { defineConfig } from 'vitest/config'

// One file after the other: the times that are measured here are those of a machine with nothing else to do.
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/faults/*.test.ts'],
    globalSetup: ['test/support/postgres.ts'],
    pool: 'forks',
    fileParallelism: false,
    disableConsoleIntercept: true,
    reporters: ['verbose', './test/support/summary.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxConcurrency: 4,
  },
})
