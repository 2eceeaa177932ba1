import type { Command } from 'commander'
import { givenOf, type JsonOption, newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addConditionOptions, type ConditionOptions, readCondition } from './questions/condition.ts'
import { addListOptions, type ListOptions, printListing } from './questions/list-options.ts'
import { peopleOf } from './questions/reads.ts'
import { atService, listAtService } from './service-commands.ts'

type CreateOptions = ConnectionOptions & JsonOption & ConditionOptions & { name?: string; description?: string }

export function segmentsCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Manages segments: filters of people with a name.'
  return newPlainCommand('segments', description, [
    `segments create vips --filter '{"attribute_values.revenue": {"$gte": 1000}}'`,
    'segments people vips --sort last_name',
  ]).addSubcommands(environment, [listCommand, getCommand, createCommand, deleteCommand, peopleCommand])
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the segments.', ['segments list', 'segments list --format csv'])
  return listAtService(environment, command, 'schema:read', ['key', 'name', 'filter'], client => client.segments.list())
}

function getCommand(environment: NodeJS.ProcessEnv): Command {
  const command = addKey(newCommand('get', 'Prints the filter of a segment.', ['segments get vips']))
  return atService(environment, command, 'schema:read', async (client, key: string, options: JsonOption) => {
    const value = await client.segments.get(key)
    printResult(options, { value, lines: [JSON.stringify(value.filter, null, 2)] })
  })
}

function createCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('create', 'Creates a segment from a filter of people.', [
    `segments create vips --filter '{"attribute_values.revenue": {"$gte": 1000}}'`,
    'segments create english --name "English speakers" --where language=en',
  ])
    .argument('<key>', 'The key, by which filters name the segment.')
    .option('--name <name>', 'A name for people to read.')
    .option('--description <text>', 'A description.')
  return addConnectionOptions(addConditionOptions(command, true)).action(
    async (key: string, options: CreateOptions) => {
      const filter = await readCondition(environment, options)
      if (filter === undefined) throw new UsageError('A condition is missing. Use --where or --filter.')
      const { client } = await connect(environment, options, { scope: 'schema:write people:read records:read' })
      const value = await client.segments.create({ key, filter, ...givenOf(options, 'name', 'description') })
      const warnings = (value.warnings ?? []).map(({ path, message }) => `Warning: ${path} ${message}`)
      printResult(options, { value, messages: [`Created the segment ${value.key}.`, ...warnings] })
    },
  )
}

function deleteCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('delete', 'Deletes a segment. The people stay.', ['segments delete vips --yes'])
  type Options = JsonOption & YesOption
  const asking = addYesOption(addKey(command))
  return atService(environment, asking, 'schema:write', async (client, key: string, options: Options) => {
    await confirm(options, `Delete the segment ${key}? The people stay.`)
    await client.segments.delete(key)
    printResult(options, { value: { key }, messages: [`Deleted the segment ${key}.`] })
  })
}

function peopleCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('people', 'Lists the people of a segment, newest first.', [
    'segments people vips',
    'segments people vips --sort last_name --fields external_id,email --format csv --limit all',
  ])
  const scope = 'schema:read people:read records:read'
  return atService(environment, addListOptions(addKey(command)), scope, (client, key: string, options: ListOptions) =>
    printListing('people', options, selection => peopleOf(client, key, selection)),
  )
}

const addKey = (command: Command) => command.argument('<key>', 'The key.')
