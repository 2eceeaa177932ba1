import { createRequire } from 'node:module'

const manifest = createRequire(import.meta.url)('../../package.json') as { version: string }

/** The running version of kith, in the format of Semantic Versioning. */
export const version = manifest.version
