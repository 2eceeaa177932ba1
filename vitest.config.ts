import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export const config = {
  include: [
    'src/**/*.test.ts',
    'cli/**/*.test.ts',
    'test/**/*.test.ts',
    'scripts/**/*.test.ts',
    'client/**/*.test.ts',
    'bench/*.test.ts',
  ],
  // They take minutes, and have a command of their own: npm run test:faults.
  exclude: ['**/node_modules/**', 'test/faults/**'],
  globalSetup: ['test/support/postgres.ts'],
  pool: 'forks',
  // Most tests wait for a process or a database: of two cores Vitest itself would use one.
  maxWorkers: Math.max(2, availableParallelism()),
  reporters: ['default', './test/support/summary.ts'],
  testTimeout: 30_000,
  hookTimeout: 60_000,
}

export default defineConfig({ test: config })
