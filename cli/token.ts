import type { Command } from 'commander'
import type { ApiTokenBody } from '../client/index.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { newCommand, printResult, wholeNumber } from './command.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions, makeToken } from './connection.ts'

type TokenOptions = ConnectionOptions & { scope: string; ttl: number; json?: boolean }

export function tokenCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Creates a token and prints it, and nothing else: on the database of this machine, or at a service, by the credentials for it.'
  const command = newCommand('token', description, [
    'token --org default --scope "people:read people:write"',
    'token --profile acme --scope people:read --ttl 600',
  ])
    .requiredOption('--scope <scopes>', `The scopes, separated by spaces: ${scopes.join(' ')}.`)
    .option('--ttl <seconds>', 'The lifetime.', wholeNumber(1), 3_600)
    .option(
      '--subject <name>',
      'The subject, recorded as the actor of every change. Default: cli, or that of the credentials.',
    )
  return addConnectionOptions(command).action(async ({ json, scope, ttl, subject, ...options }: TokenOptions) => {
    const token = await atServiceOrDatabase(environment, options, 'access:write', {
      service: async client => {
        const words = splitScopes(scope) as ApiTokenBody['scopes']
        const body = { scopes: words, expires_in: ttl, ...(subject !== undefined && { name: subject }) }
        return (await client.access.createToken(body)).token
      },
      database: (session, org) => makeToken(session, { org, scope, ttl, subject }),
    })
    printResult({ json }, { value: { token, expires_in: ttl, scope }, lines: [token] })
  })
}
