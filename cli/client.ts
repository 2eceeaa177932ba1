import type { Command } from 'commander'
import { createClient, listClients, revokeClient } from '../src/auth/clients.ts'
import { scopes } from '../src/auth/scopes.ts'
import { listOrganizations } from '../src/organizations/organizations.ts'
import { answer, newCommand, newGroup } from './command.ts'
import { withSession } from './session.ts'

type Json = { json?: boolean }

export function clientCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'make, list and revoke clients: programs that fetch their own tokens from POST /oauth/token'
  return newGroup('client', description, ['client create --org default --scope "people:read"', 'client list'])
    .addCommand(createCommand(environment))
    .addCommand(listCommand(environment))
    .addCommand(revokeCommand(environment))
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'make a client, and print client_id and client_secret: the secret is never shown again'
  return newCommand('create', description, ['client create --org default --scope "people:read" --name shop'])
    .requiredOption('--org <key>', 'the organization it speaks for')
    .requiredOption('--scope <scopes>', `all that it may do, separated by spaces: ${scopes.join(' ')}`)
    .option('--name <name>', 'what it is, for people', '')
    .action(({ org, scope, name, ...options }: { org: string; scope: string; name: string } & Json) =>
      withSession(environment, async ({ db }) => {
        const value = await createClient(db, { organizationKey: org, scope, name })
        const lines = [`client_id=${value.client_id}`, `client_secret=${value.client_secret}`]
        answer(options, { value, lines })
      }),
    )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'list the clients: id, scopes, name, when it was made, when it was revoked; tabs between, a line each'
  return newCommand('list', description, ['client list']).action((options: Json) =>
    withSession(environment, async ({ db }) => {
      const value = []
      for (const organization of await listOrganizations(db)) value.push(...(await listClients(db, organization.id)))
      const lines = value.map(({ id, scope, name, created_at, revoked_at }) =>
        [id, scope, name, created_at, revoked_at ?? ''].join('\t'),
      )
      answer(options, { value, lines })
    }),
  )
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'end a client: it gets no more tokens, and those that it has are refused within ten seconds'
  return newCommand('revoke', description, ['client revoke default.Zm9vYmFyYmF6cXV4'])
    .argument('<client_id>', 'the id that list shows')
    .action((client_id: string, options: Json) =>
      withSession(environment, async ({ db }) => {
        await revokeClient(db, client_id)
        answer(options, { value: { client_id }, said: [`revoked the client ${client_id}`] })
      }),
    )
}
