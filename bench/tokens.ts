import { join } from 'node:path'
import type { Service } from './environment.ts'
import { runProgram } from './measure.ts'

const daySeconds = 86_400

const runKith = (checkout: string, { url }: Pick<Service, 'url'>, ...words: string[]) =>
  runProgram(process.execPath, [join(checkout, 'cli', 'main.ts'), ...words], {
    PATH: process.env.PATH,
    DATABASE_URL: url,
  })

/** Creates a token with the commands of a checkout. */
export async function createToken(
  checkout: string,
  service: Pick<Service, 'url'>,
  scope: string,
  key = 'default',
): Promise<string> {
  const words = ['token', '--org', key, '--scope', scope, '--ttl', `${daySeconds}`]
  return (await runKith(checkout, service, ...words)).trim()
}

/** Returns a function that creates an organization with the commands of a checkout, and a token for it. */
export function organizationTokens(checkout: string, service: Service): (key: string) => Promise<string> {
  return async key => {
    await runKith(checkout, service, 'org', 'create', key)
    return createToken(checkout, service, 'people:read people:write', key)
  }
}
