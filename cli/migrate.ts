import { readPendingMigrations } from '../src/db/migrate.ts'
import { loadConfig } from '../src/process/config.ts'
import { viewsRenewal } from '../src/sql-views/sql-views.ts'
import type { Result } from './command.ts'
import { newCommand } from './kith-command.ts'
import { type Session, withServer, withSession } from './session.ts'

const none = 'Nothing to do: the database has every migration.'

export const migrateCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(environment, 'migrate', 'Runs the migrations that are new. The start of the service runs them too.')
    .examples('migrate', 'migrate --dry-run')
    .option('--dry-run', 'Change nothing, and print the SQL of the migrations that would run, in one transaction.')
    .action(({ dryRun }) =>
      dryRun ? withServer(loadConfig(environment), describePending) : withSession(environment, run),
    )

async function run({ db, migrations }: Session): Promise<Result> {
  if (migrations.length > 0) await viewsRenewal(db)(new AbortController().signal)
  const messages = migrations.map(name => `Ran migration ${name}.`)
  return { value: { ran: migrations }, messages: messages.length > 0 ? messages : [none] }
}

async function describePending(url: string): Promise<Result> {
  const pending = await readPendingMigrations(url)
  const lines = pending.map(({ name, sql }) => `-- ${name}\n${sql.trim()}\n`)
  return { value: { pending }, lines, messages: lines.length > 0 ? [] : [none] }
}
