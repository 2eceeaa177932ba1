import { createRequire } from 'node:module'

const { scripts } = createRequire(import.meta.url)('../package.json') as { scripts: { start: string } }

/** The flags that `npm start` passes to Node. Any other way to start the service passes the same flags. */
export const startFlags: readonly string[] = scripts.start.match(/--\S+/g) ?? []
