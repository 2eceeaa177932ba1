import type { Command } from 'commander'
import type { ApiTokenBody, Client, ListedToken } from '../client/index.ts'
import { readTokenPage, revokeToken } from '../src/auth/issued-tokens.ts'
import { contextOf } from '../src/db/context.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { newCommand, newPlainCommand, printResult, wholeNumber } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions, makeTokenForOthers } from './connection.ts'
import { addFormatOption, type FormatOption, printRows, wordsColumn } from './print-rows.ts'
import { recordOperation, requireOrganization } from './session.ts'

type TokenOptions = ConnectionOptions & { scope?: string; role?: string; ttl: number; json?: boolean }

export function tokenCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Creates a token and prints it, and nothing else: on the database of this machine, or at a service, by the credentials for it.'
  const command = newCommand('token', description, [
    'token --org default --scope "people:read people:write"',
    'token --profile acme --scope people:read --ttl 600',
  ])
    .option('--scope <scopes>', `The scopes, separated by spaces: ${scopes.join(' ')}.`)
    .option('--role <key>', 'The role, which closes fields. Default: that of the credentials, or none.')
    .option('--ttl <seconds>', 'The lifetime.', wholeNumber(1), 3_600)
    .option(
      '--subject <name>',
      'The subject, recorded as the actor of every change. Default: cli, or that of the credentials.',
    )
  command.enablePositionalOptions().addCommand(listCommand(environment)).addCommand(revokeCommand(environment))
  return addConnectionOptions(command).action(async ({ json, scope, role, ttl, subject, ...options }: TokenOptions) => {
    if (scope === undefined)
      return command.error('error: Give --scope with the scopes of the token, or list or revoke.')
    const token = await atServiceOrDatabase(environment, options, 'access:write', {
      service: async client => {
        const scopes = splitScopes(scope) as ApiTokenBody['scopes']
        const given = { ...(subject !== undefined && { name: subject }), ...(role !== undefined && { role }) }
        return (await client.access.createToken({ scopes, expires_in: ttl, ...given })).token
      },
      database: (session, org) => makeTokenForOthers(session, { org, scope, role, ttl, subject }),
    })
    printResult({ json }, { value: { token, expires_in: ttl, scope }, lines: [token] })
  })
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the tokens that were made, newest first, with their last use.'
  const command = newPlainCommand('list', description, ['token list', 'token list --profile acme --format csv'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const tokens = await atServiceOrDatabase(environment, options, 'access:read', {
      service: ({ access }: Client): Promise<ListedToken[]> => access.tokens.list({ size: 500 }).all(),
      database: async ({ db }, key = 'default') => {
        const context = contextOf(db, (await requireOrganization(db, key)).id)
        return (await readTokenPage(context, { limit: maxListed })).items
      },
    })
    await printRows(options, columns, tokens)
  })
}

/** The newest tokens of a database. A service lists all. */
const maxListed = 10_000

const columns = [
  ...['jti', 'name'],
  wordsColumn('scopes'),
  ...['role', 'maker', 'created_at', 'expires_at', 'last_used_at', 'revoked_at'],
]

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Revokes a token and those that were made with it. They are refused within ten seconds.'
  const command = newCommand('revoke', description, [
    'token revoke 8f7b6a2e-3c4d-4e5f-9a0b-1c2d3e4f5a6b --yes',
  ]).argument('<jti>', 'The id, as shown by token list.')
  type Options = ConnectionOptions & YesOption & { json?: boolean }
  return addConnectionOptions(addYesOption(command)).action(async (jti: string, options: Options) => {
    await confirm(options, `Revoke the token ${jti}? Whoever uses it is refused.`)
    await atServiceOrDatabase<unknown>(environment, options, 'access:write', {
      service: client => client.access.tokens.revoke(jti),
      database: async (session, key = 'default') => {
        const { id } = await requireOrganization(session.db, key)
        await revokeToken(contextOf(session.db, id), jti)
        await recordOperation(session, [id], { event: 'token_revoked', target: jti, command: 'kith token revoke' })
      },
    })
    printResult(options, { value: { jti }, messages: [`Revoked token ${jti}.`] })
  })
}
