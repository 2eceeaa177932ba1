import { Command } from 'commander'
import { createOrganization, listOrganizations } from '../src/organizations/directory.ts'
import { tell, withSession } from './session.ts'

export function orgCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('org')
    .description('make and list organizations, the tenants of the service')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- org create acme')
    .addCommand(createCommand(environment))
    .addCommand(listCommand(environment))
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('create')
    .description('make an organization')
    .argument('<key>', 'its key: 1 to 63 of a-z, 0-9, _ and -, a letter first')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- org create acme')
    .action((key: string) =>
      withSession(environment, async ({ db }) => {
        await createOrganization(db, key)
        tell(`made the organization ${key}`)
      }),
    )
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('list')
    .description('list the organizations: key, tab, when it was made; a line each')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- org list')
    .action(() =>
      withSession(environment, async ({ db }) => {
        for (const { key, created_at } of await listOrganizations(db)) process.stdout.write(`${key}\t${created_at}\n`)
      }),
    )
}
