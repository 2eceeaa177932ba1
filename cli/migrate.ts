import type { Command } from 'commander'
import { answer, newCommand } from './command.ts'
import { withSession } from './session.ts'

export function migrateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'bring the database to the newest migration, as every start does too'
  return newCommand('migrate', description, ['migrate']).action((options: { json?: boolean }) =>
    withSession(environment, async ({ migrations }) => {
      const ran = migrations.map(name => `ran ${name}`)
      const said = ran.length > 0 ? ran : ['nothing to do: the database stands at the newest migration']
      answer(options, { value: { ran: migrations }, said })
    }),
  )
}
