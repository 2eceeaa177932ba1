import type { Command } from 'commander'
import type { Client, Undone } from '../client/index.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult, wholeNumber } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { formatCount } from './progress.ts'
import { atService, firstOf, listAtService } from './service-commands.ts'

export function importsCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('imports', 'Lists the imports of an organization, and takes one back.', [
    'imports list',
    'imports undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run',
  ]).addSubcommands(environment, [listCommand, undoCommand])
}

const columns = 'id owner actor started_at ended_at received created updated unchanged failed undone_at'.split(' ')

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the imports, newest first.', ['imports list --limit 10']).option(
    '--limit <count>',
    'The most imports to list.',
    wholeNumber(),
    50,
  )
  return listAtService(environment, command, 'changes:read', columns, ({ imports }, { limit }: { limit: number }) =>
    firstOf(limit, 500, size => imports.list({ size })),
  )
}

function undoCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Takes back what an import changed and nothing has written since, as ordinary changes. Prints what it left. An interrupted undo goes on ' +
    'when the command runs again.'
  const command = newCommand('undo', description, [
    'imports undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run',
  ]).argument('<id>', 'The id of the import, as imports list prints it.')
  return addUndo(environment, command, 'import', 'people:write records:write', ({ imports }) => imports)
}

type Undoing = { undo(id: string, options: { dryRun: boolean }): Promise<Undone> }

/** Gives a command the options of an undo. It asks, undoes what has the id, and prints what was left, a line each. */
export function addUndo(
  environment: NodeJS.ProcessEnv,
  command: Command,
  noun: string,
  scope: string,
  undoingOf: (client: Client) => Undoing,
): Command {
  type Options = YesOption & JsonOption & { dryRun?: true }
  command.option('--dry-run', 'Change nothing, and print what the undo would do.')
  const undo = async (client: Client, id: string, options: Options) => {
    const { dryRun = false } = options
    if (!dryRun) await confirm(options, `Take back the ${noun} ${id}?`)
    const value = await undoingOf(client).undo(id, { dryRun })
    printResult(options, { value, lines: value.left.map(lineOf), messages: [summaryOf(value)] })
  }
  return addYesOption(atService(environment, command, scope, undo))
}

const lineOf = ({ owner, id, external_id, path, reason, message }: Undone['left'][number]) =>
  [owner, external_id ?? id, path ?? '', reason, message ?? ''].join('\t').trimEnd()

function summaryOf({ dry_run, deleted, restored, updated, left }: Undone): string {
  const brought = restored > 0 ? `${formatCount(restored)} brought back, ` : ''
  const counts = `${formatCount(deleted)} deleted, ${brought}${formatCount(updated)} restored, ${formatCount(left.length)} left`
  return dry_run ? `${counts}, checked and not stored` : counts
}
