import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DuplicateGroup, DuplicatesBody } from '../client/index.ts'
import { newPlainCommand, parseWholeNumber } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { printStderr } from './stderr.ts'
import { visible } from './visible.ts'

type SharedKey = NonNullable<DuplicatesBody['by']>[number]
type Options = ConnectionOptions & { by?: SharedKey[]; format: 'table' | 'ndjson'; limit?: number }

const sharedKeys: readonly string[] = ['email', 'mobile', 'name'] satisfies SharedKey[]
const groupsPerPage = 100

export function duplicatesCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Lists groups of people who share an email, a phone number, or name and date of birth, and so may be one person. Nothing is changed.'
  const command = newPlainCommand('duplicates', description, [
    'duplicates',
    'duplicates --by email,mobile --limit 50',
    'duplicates --format ndjson > duplicates.ndjson',
  ])
    .option(
      '--by <keys>',
      'The keys that they share: email, mobile or name, separated by commas. Default: all.',
      parseKeys,
    )
    .addOption(new Option('--format <format>', 'The format.').choices(['table', 'ndjson']).default('table'))
    .option('--limit <count>', 'The most groups to list. Default: all.', parseWholeNumber)
  return addConnectionOptions(command).action((options: Options) => list(environment, options))
}

function parseKeys(text: string): string[] {
  const keys = text.split(',').map(key => key.trim())
  if (!keys.every(key => sharedKeys.includes(key))) throw new InvalidArgumentError('Give email, mobile or name.')
  return keys
}

async function list(environment: NodeJS.ProcessEnv, options: Options): Promise<void> {
  const { by, format, limit = Number.POSITIVE_INFINITY } = options
  const { client } = await connect(environment, options, { scope: 'people:read' })
  let count = 0
  if (limit > 0)
    for await (const group of client.people.duplicates({ size: Math.min(limit, groupsPerPage), ...(by && { by }) })) {
      const lines = format === 'ndjson' ? [JSON.stringify(group)] : linesOf(group)
      process.stdout.write(lines.map(line => `${line}\n`).join(''))
      count += 1
      if (count >= limit) break
    }
  if (format === 'table') printStderr(count === 1 ? '1 group' : `${count} groups`)
}

type Person = DuplicateGroup['people'][number]

/** A group as a block of lines: why the people may be one, and a row for each. */
function linesOf({ people, size, score, why }: DuplicateGroup): string[] {
  const reasons = why.map(({ by, value }) => `${by} ${value}`).join(', ')
  const rows = people.map(rowOf)
  const widths = columns.map((_, index) => Math.max(...rows.map(row => row[index]!.length)))
  const lines = rows.map(row =>
    row
      .map((cell, index) => cell.padEnd(widths[index]!))
      .join('  ')
      .trimEnd(),
  )
  const more = size > people.length ? [`  and ${size - people.length} more`] : []
  return [visible(`${score}  ${size} people share ${reasons}`), ...lines.map(line => `  ${line}`), ...more, '']
}

const columns: ((person: Person) => string | null)[] = [
  ({ external_id, id }) => external_id ?? id,
  ({ first_name, last_name }) => [first_name, last_name].filter(Boolean).join(' '),
  ({ email }) => email,
  ({ mobile_prefix, mobile_number }) => [mobile_prefix, mobile_number].filter(Boolean).join(' '),
  ({ date_of_birth }) => date_of_birth,
  ({ created_at }) => `since ${created_at.slice(0, 10)}`,
]

const rowOf = (person: Person): string[] => columns.map(cell => visible(cell(person) ?? ''))
