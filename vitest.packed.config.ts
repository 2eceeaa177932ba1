import { globSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { config, systemTests } from './vitest.config.ts'

/** A tenth of the tests of the API, of the command line, and of files that are read and sent, in whole files. */
const tenth = globSync('{src,cli,transfer}/**/*.test.ts', { exclude: systemTests })
  .sort()
  .filter((_, index) => index % 10 === 7)

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
