import { Command } from 'commander'
import { createClient, listClients, revokeClient } from '../src/auth/clients.ts'
import { scopes } from '../src/auth/scopes.ts'
import { listOrganizations } from '../src/organizations/directory.ts'
import { tell, withSession } from './session.ts'

export function clientCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('client')
    .description('make, list and revoke clients: programs that fetch their own tokens from POST /oauth/token')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- client create --org default --scope "people:read"')
    .addCommand(createCommand(environment))
    .addCommand(listCommand(environment))
    .addCommand(revokeCommand(environment))
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('create')
    .description('make a client, and print client_id and client_secret: the secret is never shown again')
    .requiredOption('--org <key>', 'the organization it speaks for')
    .requiredOption('--scope <scopes>', `all that it may do, separated by spaces: ${scopes.join(' ')}`)
    .option('--name <name>', 'what it is, for people', '')
    .addHelpText(
      'after',
      '\nExample:\n  npm run -s kith -- client create --org default --scope "people:read" --name shop',
    )
    .action(({ org, scope, name }: { org: string; scope: string; name: string }) =>
      withSession(environment, async ({ db }) => {
        const { client_id, client_secret } = await createClient(db, { organization_key: org, scope, name })
        process.stdout.write(`client_id=${client_id}\nclient_secret=${client_secret}\n`)
      }),
    )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('list')
    .description('list the clients: id, scopes, name, when it was made, when it was revoked; tabs between, a line each')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- client list')
    .action(() =>
      withSession(environment, async ({ db }) => {
        for (const organization of await listOrganizations(db))
          for (const { id, scope, name, created_at, revoked_at } of await listClients(db, organization.id))
            process.stdout.write(`${[id, scope, name, created_at, revoked_at ?? ''].join('\t')}\n`)
      }),
    )
}

function revokeCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('revoke')
    .description('end a client: it gets no more tokens, and those that it has are refused within ten seconds')
    .argument('<client_id>', 'the id that list shows')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- client revoke default.Zm9vYmFyYmF6cXV4')
    .action((client_id: string) =>
      withSession(environment, async ({ db }) => {
        await revokeClient(db, client_id)
        tell(`revoked the client ${client_id}`)
      }),
    )
}
