import { join } from 'node:path'
import type { Service } from './environment.ts'
import { runProgram } from './measure.ts'

const daySeconds = 86_400

/** Returns a function that creates an organization with the commands of a checkout, and a token for it. */
export function organizationTokens(checkout: string, { url }: Service): (key: string) => Promise<string> {
  const kith = (...words: string[]) =>
    runProgram(process.execPath, [join(checkout, 'cli', 'main.ts'), ...words], {
      PATH: process.env.PATH,
      DATABASE_URL: url,
    })
  return async key => {
    await kith('org', 'create', key)
    const scope = 'people:read people:write'
    return (await kith('token', '--org', key, '--scope', scope, '--ttl', `${daySeconds}`)).trim()
  }
}
