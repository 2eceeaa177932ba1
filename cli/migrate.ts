import { Command } from 'commander'
import { tell, withSession } from './session.ts'

export function migrateCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('migrate')
    .description('bring the database to the newest migration, as every start does too')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- migrate')
    .action(() =>
      withSession(environment, async ({ migrations }) => {
        for (const name of migrations) tell(`ran ${name}`)
        if (migrations.length === 0) tell('nothing to do: the database stands at the newest migration')
      }),
    )
}
