import type { Command } from 'commander'
import type { Undone } from '../client/index.ts'
import { newCommand, newPlainCommand, printResult, wholeNumber } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'
import { formatCount } from './progress.ts'

export function importsCommand(environment: NodeJS.ProcessEnv): Command {
  return newPlainCommand('imports', 'Lists the imports of an organization, and takes one back.', [
    'imports list',
    'imports undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run',
  ])
    .addCommand(listCommand(environment))
    .addCommand(undoCommand(environment))
}

const columns = 'id owner actor started_at ended_at received created updated unchanged failed undone_at'.split(' ')

function listCommand(environment: NodeJS.ProcessEnv): Command {
  type Options = ConnectionOptions & FormatOption & { limit: number }
  const command = newPlainCommand('list', 'Lists the imports, newest first.', ['imports list --limit 10']).option(
    '--limit <count>',
    'The most imports to list.',
    wholeNumber(),
    50,
  )
  return addConnectionOptions(addFormatOption(command)).action(async (options: Options) => {
    const { client } = await connect(environment, options, { scope: 'changes:read' })
    async function* rows() {
      let left = options.limit
      if (left > 0)
        for await (const each of client.imports.list({ size: Math.min(left, 500) })) {
          yield each
          left -= 1
          if (left === 0) return
        }
    }
    await printRows(formatOf(options), columns, rows())
  })
}

function undoCommand(environment: NodeJS.ProcessEnv): Command {
  type Options = ConnectionOptions & YesOption & { dryRun?: true; json?: boolean }
  const description =
    'Takes back what an import changed and nothing has written since, as ordinary changes. Prints what it left. An interrupted undo goes on ' +
    'when the command runs again.'
  const command = newCommand('undo', description, ['imports undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run'])
    .argument('<id>', 'The id of the import, as imports list prints it.')
    .option('--dry-run', 'Change nothing, and print what the undo would do.')
  return addYesOption(addConnectionOptions(command)).action(async (id: string, options: Options) => {
    const scope = 'people:write records:write'
    const { client } = await connect(environment, options, { scope })
    if (!options.dryRun) await confirm(options, `Take back the import ${id}?`)
    const value = await client.imports.undo(id, { dryRun: options.dryRun ?? false })
    printResult(options, { value, ...linesOfUndone(value) })
  })
}

/** What an undo has left, a line each, and its counts. */
export const linesOfUndone = (value: Undone): { lines: string[]; messages: string[] } => ({
  lines: value.left.map(lineOf),
  messages: [summaryOf(value)],
})

const lineOf = ({ owner, id, external_id, path, reason, message }: Undone['left'][number]) =>
  [owner, external_id ?? id, path ?? '', reason, message ?? ''].join('\t').trimEnd()

function summaryOf({ dry_run, deleted, restored, updated, left }: Undone): string {
  const brought = restored > 0 ? `${formatCount(restored)} brought back, ` : ''
  const counts = `${formatCount(deleted)} deleted, ${brought}${formatCount(updated)} restored, ${formatCount(left.length)} left`
  return dry_run ? `${counts}, checked and not stored` : counts
}
