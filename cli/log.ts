import type { Command } from 'commander'
import { renewLogId } from '../src/changes/log-id.ts'
import type { Database } from '../src/db/db.ts'
import { findOrganization, listOrganizations, type Organization } from '../src/organizations/organizations.ts'
import { newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { withSession } from './session.ts'

type RenewOptions = { org?: string; all?: boolean; json?: boolean }

export function logCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('log', 'Manages the change log of an organization.', [
    'log renew --all',
    'log renew --org acme',
  ]).addCommand(renewCommand(environment))
}

function renewCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Gives change logs a new log_id after a restore, so that clients with positions of the lost log begin again (410). ' +
    'Prints one line per organization: key, log_id, number of the newest change, separated by tabs.'
  return newCommand('renew', description, ['log renew --all', 'log renew --org acme'])
    .option('--org <key>', 'The organization.')
    .option('--all', 'All organizations.')
    .action((options: RenewOptions) => {
      if ((options.org === undefined) === (options.all !== true)) throw new UsageError('Give either --org or --all.')
      return withSession(environment, async ({ db }) => {
        const value: { organization: string; log_id: string; head: number }[] = []
        for (const { id, key } of await organizationsOf(db, options))
          value.push({ organization: key, ...(await renewLogId(db, id)) })
        const lines = value.map(({ organization, log_id, head }) => [organization, log_id, head].join('\t'))
        printResult(options, { value, lines })
      })
    })
}

async function organizationsOf(db: Database, { org }: RenewOptions): Promise<Organization[]> {
  if (org === undefined) return listOrganizations(db)
  const organization = await findOrganization(db, org)
  if (!organization) throw new Error(`There is no organization ${JSON.stringify(org)}.`)
  return [organization]
}
