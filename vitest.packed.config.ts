import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { config, systemTests } from './vitest.config.ts'

/** These describe what a checkout prints; test/packed/ reads what the package prints. */
const ofTheCheckout = ['src/process/welcome.test.ts']

/**
 * A tenth of the tests of the API, of the command line, and of files that are read and sent, in whole files. The hash of its path
 * chooses a file, so that a new or a moved file changes nothing for the others.
 */
const tenth = globSync('{src,cli,transfer}/**/*.test.ts', { exclude: [...systemTests, ...ofTheCheckout] })
  .sort()
  .filter(path => createHash('sha256').update(path).digest()[0]! < 256 / 10)

/**
 * `npm run test:packed`: packs kith and its client, and installs both into an empty folder. Tests start what is installed there, and a
 * tenth of the tests of the first tier run on its code instead of the code of this checkout.
 */
export default defineConfig({
  test: {
    ...config,
    include: ['test/packed/**/*.test.ts', ...tenth],
    exclude: ['**/node_modules/**'],
    globalSetup: ['test/support/temporary-files.ts', 'test/packed/install.ts', 'test/support/postgres.ts'],
    execArgv: ['--import', new URL('test/packed/redirect.ts', import.meta.url).href],
  },
})
