import type { Command } from 'commander'
import { renewLogId } from '../src/changes/log-id.ts'
import { contextOf } from '../src/db/context.ts'
import { newPlainCommand, UsageError } from './command.ts'
import { addFormatOption, type FormatOption, printRows } from './print-rows.ts'
import { organizationsOf, withSession } from './session.ts'

type RenewOptions = FormatOption & { org?: string; all?: boolean }

export function logCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('log', 'Manages the change log of an organization.', [
    'log renew --all',
    'log renew --org acme',
  ]).addCommand(renewCommand(environment))
}

function renewCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Gives change logs a new log_id after a restore, so that clients with positions of the lost log begin again (410). ' +
    'Prints a row for each organization, with the number of its newest change (head).'
  const command = newPlainCommand('renew', description, ['log renew --all', 'log renew --org acme'])
  return addFormatOption(command)
    .option('--org <key>', 'The organization.')
    .option('--all', 'All organizations.')
    .action((options: RenewOptions) => {
      if ((options.org === undefined) === (options.all !== true)) throw new UsageError('Give either --org or --all.')
      return withSession(environment, async ({ db }) => {
        const renewed = []
        for (const { id, key } of await organizationsOf(db, options.org))
          renewed.push({ organization: key, ...(await renewLogId(contextOf(db, id))) })
        await printRows(options, ['organization', 'log_id', 'head'], renewed)
      })
    })
}
