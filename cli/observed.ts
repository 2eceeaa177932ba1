import { type Command, Option } from 'commander'
import { type Client, type DeclareBody, declarableTypes, type ObservedKey, type ObservedKeys } from '../client/index.ts'
import { givenOf, newCommand, newPlainCommand, printResult } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'
import { atService } from './service-commands.ts'
import { printStderr, visible } from './terminal.ts'

type DeclareOptions = ConnectionOptions &
  Pick<DeclareBody, 'type' | 'cardinality' | 'name'> & { indexed?: true; dryRun?: boolean; json?: true }

const ownerArgument = ['<people|stack_key>', 'Either people or the key of a stack.'] as const

export function observedCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Shows the keys of values that no attribute declares, and declares one of them.'
  return newPlainCommand('observed', description, [
    'observed list people',
    'observed declare people age --type number --dry-run',
  ]).addSubcommands(environment, [listCommand, declareCommand])
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Lists the keys of the newest 10,000 entities, with the number and the types of their values.'
  const command = newPlainCommand('list', description, [
    'observed list people',
    'observed list orders --all --format csv',
  ])
    .argument(...ownerArgument)
    .option('--all', 'Read all entities, however long it takes.')
  type Options = FormatOption & { all?: true }
  const listing = addFormatOption(command)
  return atService(environment, listing, 'schema:read', async (client, owner: string, { all, ...options }: Options) => {
    const { items, entities, truncated } = all ? await readAll(client, owner) : await client.schema.observed(owner)
    const format = formatOf(options)
    await printRows(options, columns, items)
    const counted = `${items.length === 1 ? '1 key' : `${items.length} keys`} in ${entities} entities`
    if (truncated) printStderr(`${counted}, the newest. There are more.`)
    else if (format === 'table') printStderr(counted)
  })
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

function declareCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Declares an attribute from an observed key, and prints how many of the stored values fit it.'
  const command = newCommand('declare', description, [
    'observed declare people age --type number --dry-run',
    'observed declare orders tags --type text --cardinality many --indexed',
  ])
    .argument(...ownerArgument)
    .argument('<key>', 'The key.')
    .addOption(new Option('--type <type>', 'The type.').choices(declarableTypes).makeOptionMandatory())
    .addOption(new Option('--cardinality <cardinality>', 'One value, or many.').choices(['one', 'many']))
    .option('--indexed', 'Filters and sorts by the attribute use an index.')
    .option('--name <name>', 'A name for people to read.')
    .option('--dry-run', 'Declare nothing, and only tell how many values fit.')
  return addConnectionOptions(command).action((owner: string, key: string, options: DeclareOptions) =>
    declare(environment, { owner, key }, options),
  )
}

async function declare(
  environment: NodeJS.ProcessEnv,
  address: Pick<DeclareBody, 'owner' | 'key'>,
  { dryRun = false, ...options }: DeclareOptions,
) {
  const scope = 'schema:read schema:write people:read records:read'
  const { client } = await connect(environment, options, { scope })
  const body = { ...address, ...givenOf(options, 'type', 'cardinality', 'indexed', 'name') }
  const value = await client.schema.declare(body, { dryRun })
  const { fits, misfits, misfit_types, examples } = value
  const summary = dryRun ? 'Nothing has changed.' : `Declared ${address.key} of ${address.owner}.`
  const lines = [
    `${summary} ${fits} stored values fit, ${misfits} do not.`,
    ...(misfits > 0 ? [`  types of those that do not: ${countsText(misfit_types)}`] : []),
    ...(examples.length > 0 ? [`  for example in: ${examples.join(', ')}`] : []),
  ]
  printResult(options, { value, lines: lines.map(visible) })
}
