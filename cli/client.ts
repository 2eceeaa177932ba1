import { type Command, Option } from 'commander'
import { createClient, listClients, revokeClient } from '../src/auth/clients.ts'
import { listOrganizations } from '../src/organizations/organizations.ts'
import { scopes } from '../src/scopes.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { withSession } from './session.ts'

type Json = { json?: boolean }

export function clientCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Creates, lists and revokes clients: programs that fetch their own tokens from POST /oauth/token.'
  return newPlainCommand('client', description, ['client create --org default --scope "people:read"', 'client list'])
    .addCommand(createCommand(environment))
    .addCommand(listCommand(environment))
    .addCommand(revokeCommand(environment))
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Creates a client and prints its client_id and client_secret. The secret is shown only once.'
  return newCommand('create', description, ['client create --org default --scope "people:read" --name shop'])
    .requiredOption('--org <key>', 'The organization of the client.')
    .requiredOption('--scope <scopes>', `The scopes it may request, separated by spaces: ${scopes.join(' ')}.`)
    .addOption(new Option('--name <name>', 'A name for people to read.').default('', 'none'))
    .action(({ org, scope, name, ...options }: { org: string; scope: string; name: string } & Json) =>
      withSession(environment, async ({ db }) => {
        const value = await createClient(db, { organizationKey: org, scope, name })
        const lines = [`client_id=${value.client_id}`, `client_secret=${value.client_secret}`]
        printResult(options, { value, lines })
      }),
    )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists the clients, one per line: id, scopes, name, time of creation, time of revocation, separated by tabs.'
  return newCommand('list', description, ['client list']).action((options: Json) =>
    withSession(environment, async ({ db }) => {
      const value = []
      for (const organization of await listOrganizations(db)) value.push(...(await listClients(db, organization.id)))
      const lines = value.map(({ id, scope, name, created_at, revoked_at }) =>
        [id, scope, name, created_at, revoked_at ?? ''].join('\t'),
      )
      printResult(options, { value, lines })
    }),
  )
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Revokes a client. It gets no more tokens, and its tokens are rejected within ten seconds.'
  return newCommand('revoke', description, ['client revoke default.Zm9vYmFyYmF6cXV4'])
    .argument('<client_id>', 'The id, as shown by client list.')
    .action((client_id: string, options: Json) =>
      withSession(environment, async ({ db }) => {
        await revokeClient(db, client_id)
        printResult(options, { value: { client_id }, messages: [`Revoked client ${client_id}.`] })
      }),
    )
}
