import { createRequire } from 'node:module'

const { scripts } = createRequire(import.meta.url)('../package.json') as { scripts: { start: string } }

/** The flags that `npm start` gives to Node: whoever starts the service in its place gives them too. */
export const startFlags: readonly string[] = scripts.start.match(/--\S+/g) ?? []
