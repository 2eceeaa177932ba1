import { renewLogId } from '../src/changes/log-id.ts'
import { contextOf } from '../src/db/context.ts'
import { UsageError } from './command.ts'
import { newPlainCommand } from './kith-command.ts'
import { organizationsOf, withSession } from './session.ts'

const examples = ['log renew --all', 'log renew --org acme']

export function logCommand(environment: NodeJS.ProcessEnv) {
  const log = newPlainCommand(environment, 'log', 'Manages the change log of an organization.').examples(...examples)
  log
    .addList(
      ['organization', 'log_id', 'head'],
      'renew',
      'Gives change logs a new log_id after a restore, so that clients with positions of the lost log begin again (410). ' +
        'Prints a row for each organization, with the number of its newest change (head).',
    )
    .examples(...examples)
    .format()
    .option('--org <key>', 'The organization.')
    .option('--all', 'All organizations.')
    .action(({ org, all }) => {
      if ((org === undefined) === (all !== true)) throw new UsageError('Give either --org or --all.')
      return withSession(environment, async ({ db }) => {
        const renewed = []
        for (const { id, key } of await organizationsOf(db, org))
          renewed.push({ organization: key, ...(await renewLogId(contextOf(db, id))) })
        return renewed
      })
    })
  return log
}
