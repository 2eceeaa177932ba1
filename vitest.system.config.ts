import { defineConfig } from 'vitest/config'
import { config, systemTests } from './vitest.config.ts'

/** `npm run test:system`: the second tier, which `vitest.config.ts` describes. */
export default defineConfig({ test: { ...config, include: systemTests, exclude: ['**/node_modules/**'] } })
