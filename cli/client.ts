import { type Command, Option } from 'commander'
import type { AccessClient, AccessClientBody } from '../client/index.ts'
import { createClient, readClientPage, revokeClient } from '../src/auth/clients.ts'
import { contextOf } from '../src/db/context.ts'
import { scopes, splitScopes } from '../src/route/scopes.ts'
import { organizationOf } from '../src/values/actor-names.ts'
import { newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, atServiceOrDatabase, type ConnectionOptions } from './connection.ts'
import { addFormatOption, type FormatOption, printRows, wordsColumn } from './print-rows.ts'
import { organizationsOf, recordOperation, requireOrganization, type Session } from './session.ts'

type Options = ConnectionOptions & { json?: boolean }

export function clientCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Creates, lists and revokes clients: programs that fetch their own tokens from POST /oauth/token. Works on the database of this ' +
    'machine, or at a service.'
  return newPlainCommand('client', description, [
    'client create --org default --scope "people:read"',
    'client list',
  ]).addSubcommands(environment, [createCommand, listCommand, revokeCommand])
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Creates a client and prints its client_id and client_secret. The secret is shown only once.'
  const command = newCommand('create', description, [
    'client create --org default --scope "people:read" --name shop',
    'client create --profile acme --scope "people:read" --name shop',
  ])
    .requiredOption('--scope <scopes>', `The scopes it may request, separated by spaces: ${scopes.join(' ')}.`)
    .option('--role <key>', 'The role of its tokens, which closes fields.')
    .addOption(new Option('--name <name>', 'A name for people to read. A service requires it.').default('', 'none'))
  return addConnectionOptions(command).action(
    async ({ json, scope, name, role, ...options }: Options & { scope: string; name: string; role?: string }) => {
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
      printResult({ json }, { value: { client_id, client_secret }, lines })
    },
  )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the clients, newest first. On the database, without --org, those of all organizations.'
  const command = newPlainCommand('list', description, ['client list', 'client list --profile acme --format csv'])
  return addConnectionOptions(addFormatOption(command)).action(async (options: ConnectionOptions & FormatOption) => {
    const clients = await atServiceOrDatabase(environment, options, 'access:read', {
      service: client => client.access.clients.list({ size: 500 }).all(),
      database: async ({ db }, key) => {
        const found: AccessClient[] = []
        for (const { id } of await organizationsOf(db, key))
          found.push(...(await readClientPage(contextOf(db, id), { limit: maxListed })).items)
        return found
      },
    })
    await printRows(options, columns, clients)
  })
}

/** No organization has so many clients. */
const maxListed = 1_000_000

const columns = [...['client_id', 'name'], wordsColumn('scopes'), ...['role', 'created_at', 'revoked_at']]

async function recordClient(session: Session, event: 'client_created' | 'client_revoked', client_id: string) {
  const { id } = await requireOrganization(session.db, organizationOf(client_id)!)
  const command = event === 'client_created' ? 'kith client create' : 'kith client revoke'
  await recordOperation(session, [id], { event, target: client_id, command })
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Revokes a client. It gets no more tokens, and its tokens are rejected within ten seconds.'
  const command = newCommand('revoke', description, ['client revoke default.Zm9vYmFyYmF6cXV4 --yes']).argument(
    '<client_id>',
    'The id, as shown by client list.',
  )
  return addConnectionOptions(addYesOption(command)).action(async (client_id: string, options: Options & YesOption) => {
    await confirm(options, `Revoke the client ${client_id}? It gets no more tokens.`)
    await atServiceOrDatabase<unknown>(environment, options, 'access:write', {
      service: client => client.access.clients.revoke(client_id),
      database: async session => {
        await revokeClient(session.db, client_id)
        await recordClient(session, 'client_revoked', client_id)
      },
    })
    printResult(options, { value: { client_id }, messages: [`Revoked client ${client_id}.`] })
  })
}
