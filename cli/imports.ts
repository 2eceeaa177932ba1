import type { Client, Undone } from '../client/index.ts'
import { type JsonOption, type Result, wholeNumber } from './command.ts'
import { confirm } from './confirm.ts'
import { type KithCommand, newPlainCommand } from './kith-command.ts'
import { firstOf } from './print-rows.ts'
import { formatCount } from './progress.ts'

const columns = 'id owner actor started_at ended_at received created updated unchanged failed undone_at'.split(' ')

export function importsCommand(environment: NodeJS.ProcessEnv) {
  const imports = newPlainCommand(
    environment,
    'imports',
    'Lists the imports of an organization, and takes one back.',
  ).examples('imports list', 'imports undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run')
  imports
    .addList(columns, 'list', 'Lists the imports, newest first.')
    .examples('imports list --limit 10')
    .option('--limit <count>', 'The most imports to list.', { parse: wholeNumber(), default: 50 })
    .atService('changes:read', ({ imports }, { limit }) => firstOf(limit, 500, size => imports.list({ size })))
  const undo = imports
    .add(
      'undo',
      'Takes back what an import changed and nothing has written since, as ordinary changes. Prints what it left. An interrupted undo goes on ' +
        'when the command runs again.',
    )
    .examples('imports undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run')
    .argument('<id>', 'The id of the import, as imports list prints it.')
  addUndo(undo, 'import', 'people:write records:write', ({ imports }) => imports)
  return imports
}

type Undoing = { undo(id: string, options: { dryRun: boolean }): Promise<Undone> }

/**
 * Makes a command an undo. It asks, undoes the import or job with the id, and prints the entities that it left, one per
 * line.
 */
export function addUndo(
  command: KithCommand<[id: string], JsonOption, Result>,
  noun: string,
  scope: string,
  undoingOf: (client: Client) => Undoing,
): void {
  command
    .option('--dry-run', 'Change nothing, and print what the undo would do.')
    .connection()
    .yes()
    .atService(scope, async (client, id, options) => {
      const { dryRun = false } = options
      if (!dryRun) await confirm(options, `Take back the ${noun} ${id}?`)
      const value = await undoingOf(client).undo(id, { dryRun })
      return { value, lines: value.left.map(lineOf), messages: [summaryOf(value)] }
    })
}

const lineOf = ({ owner, id, external_id, path, reason, message }: Undone['left'][number]) =>
  [owner, external_id ?? id, path ?? '', reason, message ?? ''].join('\t').trimEnd()

function summaryOf({ dry_run, deleted, restored, updated, left }: Undone): string {
  const brought = restored > 0 ? `${formatCount(restored)} brought back, ` : ''
  const counts = `${formatCount(deleted)} deleted, ${brought}${formatCount(updated)} restored, ${formatCount(left.length)} left`
  return dry_run ? `${counts}, checked and not stored` : counts
}
