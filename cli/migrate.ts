import type { Command } from 'commander'
import { newCommand, printResult } from './command.ts'
import { withSession } from './session.ts'

export function migrateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Runs the migrations that are new. The start of the service runs them too.'
  return newCommand('migrate', description, ['migrate']).action((options: { json?: boolean }) =>
    withSession(environment, async ({ migrations }) => {
      const messages = migrations.map(name => `Ran migration ${name}.`)
      if (messages.length === 0) messages.push('Nothing to do: the database has every migration.')
      printResult(options, { value: { ran: migrations }, messages })
    }),
  )
}
