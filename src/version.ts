import { createRequire } from 'node:module'

const manifest = createRequire(import.meta.url)('../package.json') as { version: string }

/** The version of kith that runs, as Semantic Versioning has it. */
export const version = manifest.version
