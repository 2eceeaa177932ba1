#!/usr/bin/env node
import { type Command, CommanderError } from 'commander'
import { version } from '../src/version.ts'
import { backupCommand } from './backup.ts'
import { clientCommand } from './client.ts'
import { codegenCommand } from './codegen.ts'
import { errorMessage, newPlainCommand, UsageError } from './command.ts'
import { completeCommand, completionCommand } from './completion.ts'
import { doctorCommand } from './doctor.ts'
import { exportCommand } from './export.ts'
import { followCommand } from './follow.ts'
import { importCommand } from './import.ts'
import { keysCommand } from './keys.ts'
import { logCommand } from './log.ts'
import { migrateCommand } from './migrate.ts'
import { orgCommand } from './org.ts'
import { restoreCommand } from './restore.ts'
import { schemaCommand } from './schema.ts'
import { seedCommand } from './seed.ts'
import { serveCommand } from './serve.ts'
import { printStderr } from './session.ts'
import { tokenCommand } from './token.ts'
import { webhooksCommand } from './webhooks.ts'

const commands = [
  serveCommand,
  importCommand,
  exportCommand,
  followCommand,
  webhooksCommand,
  backupCommand,
  restoreCommand,
  migrateCommand,
  orgCommand,
  tokenCommand,
  clientCommand,
  keysCommand,
  logCommand,
  codegenCommand,
  schemaCommand,
  seedCommand,
  doctorCommand,
  completionCommand,
]

function programFor(environment: NodeJS.ProcessEnv): Command {
  const description =
    'A self-hosted contact and record data service. Settings come from the environment; see docs/configuration.md.'
  const program = newPlainCommand('kith', description, ['token --org default --scope "people:read people:write"'])
  program.version(version, '-V, --version', 'Print the version.')
  for (const command of commands) program.addCommand(command(environment))
  program.addCommand(
    completeCommand(() => program),
    { hidden: true },
  )
  configureErrors(program, '')
  return program
}

/** By default, commander ends the process itself, with 1 for wrong usage too, and does not refer to the help. */
function configureErrors(command: Command, path: string) {
  command.exitOverride().showHelpAfterError(`See npm run -s kith --${path} --help`)
  for (const subcommand of command.commands) configureErrors(subcommand, `${path} ${subcommand.name()}`)
}

/** The exit code: 0 for help, 2 for wrong usage, 1 for any other error. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  printStderr(errorMessage(error))
  return error instanceof UsageError ? 2 : 1
}

/** The reader of a pipe may close it, as `head` does. The command then exits with 1 without a message. */
function exitOnClosedOutput() {
  process.stdout.on('error', error => {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') printStderr(errorMessage(error))
    process.exit(1)
  })
  process.stderr.on('error', () => {})
}

exitOnClosedOutput()
try {
  await programFor(process.env).parseAsync()
} catch (error) {
  const code = exitCodeOf(error)
  // A command may have set its own exit code, as schema diff does.
  process.exitCode ??= code
}
