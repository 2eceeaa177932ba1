import { defineConfig } from 'vitest/config'
import { unitTests } from './test/support/unit-tests.ts'
import { config } from './vitest.config.ts'

const { include, ...rest } = config

/** `npm run test:unit`: the tests of rules, without a service or a database. */
export default defineConfig({
  test: { ...rest, include: unitTests(include), globalSetup: ['test/support/temporary-files.ts'] },
})
