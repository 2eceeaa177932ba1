import type { Command } from 'commander'
import { readPendingMigrations } from '../src/db/migrate.ts'
import { loadConfig } from '../src/process/config.ts'
import { viewsRenewal } from '../src/sql-views/sql-views.ts'
import { newCommand, printResult } from './command.ts'
import { withServer, withSession } from './session.ts'

type Options = { json?: boolean; dryRun?: boolean }

const none = 'Nothing to do: the database has every migration.'

export function migrateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Runs the migrations that are new. The start of the service runs them too.'
  return newCommand('migrate', description, ['migrate', 'migrate --dry-run'])
    .option('--dry-run', 'Change nothing, and print the SQL of the migrations that would run, in one transaction.')
    .action((options: Options) => (options.dryRun ? printPending(environment, options) : run(environment, options)))
}

const run = (environment: NodeJS.ProcessEnv, options: Options): Promise<void> =>
  withSession(environment, async ({ db, migrations }) => {
    if (migrations.length > 0) await viewsRenewal(db)(new AbortController().signal)
    const messages = migrations.map(name => `Ran migration ${name}.`)
    printResult(options, { value: { ran: migrations }, messages: messages.length > 0 ? messages : [none] })
  })

const printPending = (environment: NodeJS.ProcessEnv, options: Options): Promise<void> =>
  withServer(loadConfig(environment), async url => {
    const pending = await readPendingMigrations(url)
    const lines = pending.map(({ name, sql }) => `-- ${name}\n${sql.trim()}\n`)
    printResult(options, { value: { pending }, lines, messages: lines.length > 0 ? [] : [none] })
  })
