import type { ApiTokenBody, Client, ListedToken } from '../client/index.ts'
import { readTokenPage, revokeToken } from '../src/auth/issued-tokens.ts'
import { contextOf } from '../src/db/context.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { isUuid } from '../src/values/formats.ts'
import { wholeNumber } from './command.ts'
import { confirm } from './confirm.ts'
import { atServiceOrDatabase, makeTokenForOthers } from './connection.ts'
import { newCommand } from './kith-command.ts'
import { wordsColumn } from './print-rows.ts'
import { recordOperation, requireOrganization } from './session.ts'

export function tokenCommand(environment: NodeJS.ProcessEnv) {
  const token = newCommand(
    environment,
    'token',
    'Creates a token and prints it, and nothing else: on the database of this machine, or at a service, by the credentials for it.',
  ).examples(
    'token --org default --scope "people:read people:write"',
    'token --profile acme --scope people:read --ttl 600',
  )
  token
    .option('--scope <scopes>', `The scopes, separated by spaces: ${scopes.join(' ')}.`)
    .option('--role <key>', 'The role, which closes fields. Default: that of the credentials, or none.')
    .option('--ttl <seconds>', 'The lifetime.', { parse: wholeNumber(1), default: 3_600 })
    .option(
      '--subject <name>',
      'The subject, recorded as the actor of every change. Default: cli, or that of the credentials.',
    )
    .connection()
    .action(async ({ json: _, scope, role, ttl, subject, ...options }) => {
      if (scope === undefined)
        return token.command.error('error: Give --scope with the scopes of the token, or list or revoke.')
      const made = await atServiceOrDatabase(environment, options, 'access:write', {
        service: async client => {
          const scopes = splitScopes(scope) as ApiTokenBody['scopes']
          const given = { ...(subject !== undefined && { name: subject }), ...(role !== undefined && { role }) }
          return (await client.access.createToken({ scopes, expires_in: ttl, ...given })).token
        },
        database: (session, org) => makeTokenForOthers(session, { org, scope, role, ttl, subject }),
      })
      return { value: { token: made, expires_in: ttl, scope }, lines: [made] }
    })
  token.command.enablePositionalOptions()
  token
    .addList(columns, 'list', 'Lists the tokens that were made, newest first, with their last use.')
    .examples('token list', 'token list --profile acme --format csv')
    .connection()
    .action(options =>
      atServiceOrDatabase(environment, options, 'access:read', {
        service: ({ access }: Client): Promise<ListedToken[]> => access.tokens.list({ size: 500 }).all(),
        database: async ({ db }, key = 'default') => {
          const context = contextOf(db, (await requireOrganization(db, key)).id)
          return (await readTokenPage(context, { limit: maxListed })).items
        },
      }),
    )
  token
    .add('revoke', 'Revokes a token and those that were made with it. They are refused within ten seconds.')
    .examples('token revoke 8f7b6a2e-3c4d-4e5f-9a0b-1c2d3e4f5a6b --yes')
    .argument('<jti>', 'The id, as shown by token list.')
    .yes()
    .connection()
    .action(async (jti, options) => {
      await confirm(options, `Revoke the token ${jti}? Whoever uses it is refused.`)
      await atServiceOrDatabase<unknown>(environment, options, 'access:write', {
        service: client => client.access.tokens.revoke(jti),
        database: async (session, key = 'default') => {
          const { id } = await requireOrganization(session.db, key)
          if (!isUuid(jti)) throw new Error(`${JSON.stringify(jti)} is not the id of a token. See kith token list.`)
          await revokeToken(contextOf(session.db, id), jti)
          await recordOperation(session, [id], { event: 'token_revoked', target: jti, command: 'kith token revoke' })
        },
      })
      return { value: { jti }, messages: [`Revoked token ${jti}.`] }
    })
  return token
}

/** The command lists at most this many tokens from the database. From a service it lists all. */
const maxListed = 10_000

const columns = [
  ...['jti', 'name'],
  wordsColumn('scopes'),
  ...['role', 'maker', 'created_at', 'expires_at', 'last_used_at', 'revoked_at'],
]
