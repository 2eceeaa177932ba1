import { Command, CommanderError } from 'commander'
import { clientCommand } from './client.ts'
import { codegenCommand } from './codegen.ts'
import { doctorCommand } from './doctor.ts'
import { keysCommand } from './keys.ts'
import { migrateCommand } from './migrate.ts'
import { orgCommand } from './org.ts'
import { serveCommand } from './serve.ts'
import { tell } from './session.ts'
import { tokenCommand } from './token.ts'

function programFor(environment: NodeJS.ProcessEnv): Command {
  const program = new Command('kith')
    .description('A self-hosted contact and record data service. Settings come from the environment: see README.md.')
    .addHelpText('after', '\nExample:\n  npm run -s kith -- token --org default --scope "people:read people:write"')
  for (const command of [
    serveCommand,
    migrateCommand,
    orgCommand,
    tokenCommand,
    clientCommand,
    keysCommand,
    codegenCommand,
    doctorCommand,
  ])
    program.addCommand(command(environment))
  throwErrors(program)
  return program
}

/** Commander would end the process by itself, with 1 for wrong usage too. */
function throwErrors(command: Command) {
  command.exitOverride()
  for (const subcommand of command.commands) throwErrors(subcommand)
}

/** 0 for help, 2 for wrong usage, 1 for all else. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  tell(sentenceOf(error))
  return 1
}

/** What went wrong, for a person: never a stack trace. */
function sentenceOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : `The command failed: ${String(error)}`
}

try {
  await programFor(process.env).parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
