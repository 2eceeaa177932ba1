import type { Command } from 'commander'
import { migrateCell } from '../src/cells/prepare.ts'
import { newCommand, printResult } from './command.ts'
import { withSession } from './session.ts'

export function migrateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Runs the migrations that are new, in every cell. The start of the service runs them too.'
  return newCommand('migrate', description, ['migrate']).action((options: { json?: boolean }) =>
    withSession(environment, async ({ config, migrations }) => {
      const messages = migrations.map(name => `Ran migration ${name}.`)
      const cells: Record<string, string[]> = {}
      for (const cell of config.cells) {
        const ran = await migrateCell(cell)
        messages.push(...ran.map(name => `Ran migration ${name} in the cell ${cell.name}.`))
        cells[cell.name] = ran
      }
      if (messages.length === 0) messages.push('Nothing to do: the database has every migration.')
      printResult(options, { value: { ran: migrations, ...(config.cells.length > 0 && { cells }) }, messages })
    }),
  )
}
