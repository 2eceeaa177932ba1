import type { AccessClient, AccessClientBody } from '../client/index.ts'
import { createClient, readClientPage, revokeClient } from '../src/auth/clients.ts'
import { contextOf } from '../src/db/context.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { organizationOf } from '../src/values/actor-names.ts'
import { UsageError } from './command.ts'
import { confirm } from './confirm.ts'
import { atServiceOrDatabase } from './connection.ts'
import { newPlainCommand } from './kith-command.ts'
import { wordsColumn } from './print-rows.ts'
import { organizationsOf, recordOperation, requireOrganization, type Session } from './session.ts'

export function clientCommand(environment: NodeJS.ProcessEnv) {
  const clients = newPlainCommand(
    environment,
    'client',
    'Creates, lists and revokes clients: programs that fetch their own tokens from POST /oauth/token. Works on the database of this ' +
      'machine, or at a service.',
  ).examples('client create --org default --scope "people:read"', 'client list')
  clients
    .add('create', 'Creates a client and prints its client_id and client_secret. The secret is shown only once.')
    .examples(
      'client create --org default --scope "people:read" --name shop',
      'client create --profile acme --scope "people:read" --name shop',
    )
    .option('--scope <scopes>', `The scopes it may request, separated by spaces: ${scopes.join(' ')}.`, {
      required: true,
    })
    .option('--role <key>', 'The role of its tokens, which closes fields.')
    .option('--name <name>', 'A name for people to read. A service requires it.', { default: '', shown: 'none' })
    .connection()
    .action(async ({ scope, name, role, ...options }) => {
      const { client_id, client_secret } = await atServiceOrDatabase(environment, options, 'access:write', {
        service: client => {
          if (name === '') throw new UsageError('The service requires a name. Give --name.')
          const scopes = splitScopes(scope) as AccessClientBody['scopes']
          return client.access.clients.create({ name, scopes, ...(role !== undefined && { role }) })
        },
        database: async (session, organizationKey = 'default') => {
          const made = await createClient(session.db, { organizationKey, scope, name, role })
          await recordClient(session, 'client_created', made.client_id)
          return made
        },
      })
      const lines = [`client_id=${client_id}`, `client_secret=${client_secret}`]
      return { value: { client_id, client_secret }, lines }
    })
  clients
    .addList(
      columns,
      'list',
      'Lists the clients, newest first. On the database, without --org, those of all organizations.',
    )
    .examples('client list', 'client list --profile acme --format csv')
    .connection()
    .action(options =>
      atServiceOrDatabase(environment, options, 'access:read', {
        service: client => client.access.clients.list({ size: 500 }).all(),
        database: async ({ db }, key) => {
          const found: AccessClient[] = []
          for (const { id } of await organizationsOf(db, key))
            found.push(...(await readClientPage(contextOf(db, id), { limit: maxListed })).items)
          return found
        },
      }),
    )
  clients
    .add('revoke', 'Revokes a client. It gets no more tokens, and its tokens are rejected within ten seconds.')
    .examples('client revoke default.Zm9vYmFyYmF6cXV4 --yes')
    .argument('<client_id>', 'The id, as shown by client list.')
    .yes()
    .connection()
    .action(async (client_id, options) => {
      await confirm(options, `Revoke the client ${client_id}? It gets no more tokens.`)
      await atServiceOrDatabase<unknown>(environment, options, 'access:write', {
        service: client => client.access.clients.revoke(client_id),
        database: async session => {
          await revokeClient(session.db, client_id)
          await recordClient(session, 'client_revoked', client_id)
        },
      })
      return { value: { client_id }, messages: [`Revoked client ${client_id}.`] }
    })
  return clients
}

/** The limit exceeds the number of clients of any organization. */
const maxListed = 1_000_000

const columns = [...['client_id', 'name'], wordsColumn('scopes'), ...['role', 'created_at', 'revoked_at']]

async function recordClient(session: Session, event: 'client_created' | 'client_revoked', client_id: string) {
  const { id } = await requireOrganization(session.db, organizationOf(client_id)!)
  const command = event === 'client_created' ? 'kith client create' : 'kith client revoke'
  await recordOperation(session, [id], { event, target: client_id, command })
}
