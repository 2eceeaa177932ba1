import { defineConfig, mergeConfig } from 'vitest/config'
import { unitTests } from './test/support/unit-tests.ts'
import whole from './vitest.config.ts'

/** `npm run test:unit`: the tests of pure rules, without a service or a database. */
const { include, ...rest } = whole.test!
export default mergeConfig(defineConfig({}), {
  test: { ...rest, include: unitTests(include!), globalSetup: [], isolate: false },
})
