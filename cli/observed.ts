import { type Client, declarableTypes, type ObservedKey, type ObservedKeys } from '../client/index.ts'
import { givenOf } from './command.ts'
import { newPlainCommand } from './kith-command.ts'
import { formatOf, printRows } from './print-rows.ts'
import { printStderr, visible } from './terminal.ts'

const ownerArgument = ['<people|stack_key>', 'Either people or the key of a stack.'] as const

export function observedCommand(environment: NodeJS.ProcessEnv) {
  const observed = newPlainCommand(
    environment,
    'observed',
    'Shows the keys of values that no attribute declares, and declares one of them.',
  ).examples('observed list people', 'observed declare people age --type number --dry-run')
  observed
    .addPlain('list', 'Lists the keys of the newest 10,000 entities, with the number and the types of their values.')
    .examples('observed list people', 'observed list orders --all --format csv')
    .argument(...ownerArgument)
    .option('--all', 'Read all entities, however long it takes.')
    .format()
    .atService('schema:read', async (client, owner, { all, ...options }) => {
      const { items, entities, truncated } = all ? await readAll(client, owner) : await client.schema.observed(owner)
      await printRows(options, columns, items)
      const counted = `${items.length === 1 ? '1 key' : `${items.length} keys`} in ${entities} entities`
      if (truncated) printStderr(`${counted}, the newest. There are more.`)
      else if (formatOf(options) === 'table') printStderr(counted)
    })
  observed
    .add('declare', 'Declares an attribute from an observed key, and prints how many of the stored values fit it.')
    .examples(
      'observed declare people age --type number --dry-run',
      'observed declare orders tags --type text --cardinality many --indexed',
    )
    .argument(...ownerArgument)
    .argument('<key>', 'The key.')
    .option('--type <type>', 'The type.', { choices: declarableTypes, required: true })
    .option('--cardinality <cardinality>', 'One value, or many.', { choices: ['one', 'many'] })
    .option('--indexed', 'Filters and sorts by the attribute use an index.')
    .option('--name <name>', 'A name for people to read.')
    .option('--dry-run', 'Declare nothing, and only tell how many values fit.')
    .atService('schema:read schema:write people:read records:read', async (client, owner, key, options) => {
      const { dryRun = false } = options
      const body = { owner, key, ...givenOf(options, 'type', 'cardinality', 'indexed', 'name') }
      const value = await client.schema.declare(body, { dryRun })
      const { fits, misfits, misfit_types, examples } = value
      const summary = dryRun ? 'Nothing has changed.' : `Declared ${key} of ${owner}.`
      const lines = [
        `${summary} Stored values that fit: ${fits}, that do not: ${misfits}.`,
        ...(misfits > 0 ? [`  types of those that do not: ${countsText(misfit_types)}`] : []),
        ...(examples.length > 0 ? [`  for example in: ${examples.join(', ')}`] : []),
      ]
      return { value, lines: lines.map(visible) }
    })
  return observed
}

async function readAll(client: Client, owner: string): Promise<ObservedKeys> {
  const items: ObservedKey[] = []
  for await (const line of client.schema.observedInAll(owner))
    if ('key' in line) items.push(line)
    else return { items, ...line }
  throw new Error('The response ended before its last line.')
}

const columns = [
  'key',
  { name: 'types', textOf: (value: unknown) => countsText(value as ObservedKey['types']) },
  ...['count', 'first_seen', 'last_seen', 'declarable'],
]

const countsText = (counts: object): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([type, count]) => `${type} ${count}`)
    .join(', ')
