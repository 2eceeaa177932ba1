#!/usr/bin/env node
import { type Command, CommanderError } from 'commander'
import { version } from '../src/version.ts'
import { backupCommand } from './backup.ts'
import { clientCommand } from './client.ts'
import { codegenCommand } from './codegen.ts'
import { newGroup, sentenceOf, UsageError } from './command.ts'
import { completeCommand, completionCommand } from './completion.ts'
import { doctorCommand } from './doctor.ts'
import { exportCommand } from './export.ts'
import { importCommand } from './import.ts'
import { keysCommand } from './keys.ts'
import { migrateCommand } from './migrate.ts'
import { orgCommand } from './org.ts'
import { restoreCommand } from './restore.ts'
import { schemaCommand } from './schema.ts'
import { seedCommand } from './seed.ts'
import { serveCommand } from './serve.ts'
import { printStderr } from './session.ts'
import { tokenCommand } from './token.ts'

const commands = [
  serveCommand,
  importCommand,
  exportCommand,
  backupCommand,
  restoreCommand,
  migrateCommand,
  orgCommand,
  tokenCommand,
  clientCommand,
  keysCommand,
  codegenCommand,
  schemaCommand,
  seedCommand,
  doctorCommand,
  completionCommand,
]

function programFor(environment: NodeJS.ProcessEnv): Command {
  const description =
    'A self-hosted contact and record data service. Settings come from the environment: see docs/configuration.md.'
  const program = newGroup('kith', description, ['token --org default --scope "people:read people:write"'])
  program.version(version, '-V, --version', 'print the version')
  for (const command of commands) program.addCommand(command(environment))
  program.addCommand(
    completeCommand(() => program),
    { hidden: true },
  )
  settle(program, '')
  return program
}

/** Commander would end the process by itself, with 1 for wrong usage too, and say no word of where to look. */
function settle(command: Command, path: string) {
  command.exitOverride().showHelpAfterError(`See npm run -s kith --${path} --help`)
  for (const subcommand of command.commands) settle(subcommand, `${path} ${subcommand.name()}`)
}

/** 0 for help, 2 for wrong usage, 1 for all else. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  printStderr(sentenceOf(error))
  return error instanceof UsageError ? 2 : 1
}

/** Whoever reads us may have heard enough: then there is nobody to tell, and nothing to do. */
function heedClosedOutput() {
  process.stdout.on('error', error => {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') printStderr(sentenceOf(error))
    process.exit(1)
  })
  process.stderr.on('error', () => {})
}

heedClosedOutput()
try {
  await programFor(process.env).parseAsync()
} catch (error) {
  const code = exitCodeOf(error)
  // A command may have said by then what its failure means.
  process.exitCode ??= code
}
