#!/usr/bin/env node
import { type Command, CommanderError } from 'commander'
import { version } from '../src/process/version.ts'
import { UsageError } from './command.ts'
import { completeCommand } from './completion.ts'
import { newPlainCommand } from './kith-command.ts'
import { printStderr } from './terminal.ts'

type CreateCommand = (environment: NodeJS.ProcessEnv) => { command: Command }

/**
 * The modules of the commands, in the order of the help. All modules together take 0.6 s to load, one module often
 * takes 0.1 s.
 */
const commands: Record<string, () => Promise<CreateCommand>> = {
  serve: async () => (await import('./serve.ts')).serveCommand,
  import: async () => (await import('./import.ts')).importCommand,
  deliverability: async () => (await import('./deliverability.ts')).deliverabilityCommand,
  imports: async () => (await import('./imports.ts')).importsCommand,
  bulk: async () => (await import('./bulk.ts')).bulkCommand,
  export: async () => (await import('./export.ts')).exportCommand,
  dossier: async () => (await import('./dossier.ts')).dossierCommand,
  duplicates: async () => (await import('./duplicates.ts')).duplicatesCommand,
  'set-aside': async () => (await import('./set-aside.ts')).setAsideCommand,
  people: async () => (await import('./entities.ts')).peopleCommand,
  records: async () => (await import('./entities.ts')).recordsCommand,
  search: async () => (await import('./search.ts')).searchCommand,
  aggregate: async () => (await import('./aggregate.ts')).aggregateCommand,
  segments: async () => (await import('./segments.ts')).segmentsCommand,
  observed: async () => (await import('./observed.ts')).observedCommand,
  mcp: async () => (await import('./mcp.ts')).mcpCommand,
  api: async () => (await import('./api.ts')).apiCommand,
  follow: async () => (await import('./follow.ts')).followCommand,
  webhooks: async () => (await import('./webhooks.ts')).webhooksCommand,
  erase: async () => (await import('./erase.ts')).eraseCommand,
  'retention-rule': async () => (await import('./lifetimes.ts')).retentionRuleCommand,
  hold: async () => (await import('./lifetimes.ts')).holdCommand,
  erasures: async () => (await import('./erasures.ts')).erasuresCommand,
  merge: async () => (await import('./merge.ts')).mergeCommand,
  unmerge: async () => (await import('./merge.ts')).unmergeCommand,
  backup: async () => (await import('./backup.ts')).backupCommand,
  restore: async () => (await import('./restore.ts')).restoreCommand,
  archive: async () => (await import('./archive.ts')).archiveCommand,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  distribute: async () => (await import('./distribute.ts')).distributeCommand,
  org: async () => (await import('./org.ts')).orgCommand,
  token: async () => (await import('./token.ts')).tokenCommand,
  role: async () => (await import('./role.ts')).roleCommand,
  client: async () => (await import('./client.ts')).clientCommand,
  views: async () => (await import('./views.ts')).viewsCommand,
  user: async () => (await import('./user.ts')).userCommand,
  'access-log': async () => (await import('./access-log.ts')).accessLogCommand,
  console: async () => (await import('./console.ts')).consoleCommand,
  keys: async () => (await import('./keys.ts')).keysCommand,
  log: async () => (await import('./log.ts')).logCommand,
  ledger: async () => (await import('./ledger.ts')).ledgerCommand,
  codegen: async () => (await import('./codegen.ts')).codegenCommand,
  schema: async () => (await import('./schema.ts')).schemaCommand,
  seed: async () => (await import('./seed.ts')).seedCommand,
  verify: async () => (await import('./verify.ts')).verifyCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  login: async () => (await import('./login.ts')).loginCommand,
  logout: async () => (await import('./login.ts')).logoutCommand,
  profiles: async () => (await import('./login.ts')).profilesCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
}

/** The names of the commands that a command line needs: its first word, or all commands for the help. */
function neededCommands([word = '', ...rest]: string[]): string[] {
  if (['--version', '-V'].includes(word)) return []
  if (word === 'complete' && rest[0] === '--') return neededToComplete(rest.slice(1))
  return Object.hasOwn(commands, word) ? [word] : Object.keys(commands)
}

/** The last word of a line to complete is unfinished, so a single word may begin the name of any command. */
const neededToComplete = ([word = '', ...rest]: string[]) =>
  rest.length > 0 && Object.hasOwn(commands, word) ? [word] : Object.keys(commands)

async function createProgram(environment: NodeJS.ProcessEnv, names: string[]): Promise<Command> {
  const program = newPlainCommand(
    environment,
    'kith',
    'A self-hosted contact and record data service. Settings come from the environment; see docs/configuration.md.',
  ).examples('token --org default --scope "people:read people:write"')
  // If a command and its subcommand have the same option, as in token, the option after the subcommand belongs to it.
  program.command.version(version, '-V, --version', 'Print the version.').enablePositionalOptions()
  for (const name of names) program.adopt((await commands[name]!())(environment))
  program.command.addCommand(completeCommand(program).command, { hidden: true })
  configureErrors(program.command, '')
  return program.command
}

/** By default, commander ends the process itself, with 1 for wrong usage too, and does not refer to the help. */
function configureErrors(command: Command, path: string) {
  command.exitOverride().showHelpAfterError(`See npx kith${path} --help`)
  for (const subcommand of command.commands) configureErrors(subcommand, `${path} ${subcommand.name()}`)
}

/**
 * Prints an error, unless commander has printed it. Returns the exit code: 0 for help, 2 for wrong usage, 1 for any
 * other error.
 */
async function reportError(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const { errorMessage } = await import('./error-message.ts')
  printStderr(errorMessage(error))
  return error instanceof UsageError ? 2 : 1
}

/** The reader of a pipe may close it, as `head` does. The command then exits with 1 without a message. */
function exitOnClosedOutput() {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') printStderr(error.message)
    process.exit(1)
  })
  process.stderr.on('error', () => {})
}

exitOnClosedOutput()
try {
  const program = await createProgram(process.env, neededCommands(process.argv.slice(2)))
  await program.parseAsync()
} catch (error) {
  const code = await reportError(error)
  // A command may have set its own exit code, as schema diff does.
  process.exitCode ??= code
}
