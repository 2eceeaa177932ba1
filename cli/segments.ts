import type { Command } from 'commander'
import type { Segment } from '../client/index.ts'
import { newCommand, newPlainCommand, printResult, UsageError } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addOutputOption, createRowPrinter, type OutputFormat, outputFormat } from './output-format.ts'
import { addConditionOptions, type ConditionOptions, readCondition } from './questions/condition.ts'
import { addListOptions, type ListOptions, printListing } from './questions/list-options.ts'
import { peopleOf } from './questions/reads.ts'

type Options = ConnectionOptions & { json?: true }
type CreateOptions = Options & ConditionOptions & { name?: string; description?: string }

export function segmentsCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Manages segments: filters of people with a name.'
  return newPlainCommand('segments', description, [
    `segments create vips --filter '{"attribute_values.revenue": {"$gte": 1000}}'`,
    'segments people vips --sort last_name',
  ])
    .addCommand(listCommand(environment))
    .addCommand(getCommand(environment))
    .addCommand(createCommand(environment))
    .addCommand(deleteCommand(environment))
    .addCommand(peopleCommand(environment))
}

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the segments.', ['segments list', 'segments list --output json'])
  return addConnectionOptions(addOutputOption(command)).action(
    async (options: ConnectionOptions & { output?: OutputFormat }) => {
      const { client } = await connect(environment, options, { scope: 'schema:read' })
      const columns = (['key', 'name', 'filter'] as const).map(name => ({
        name,
        read: (row: object) => (row as Segment)[name],
      }))
      createRowPrinter(outputFormat(options.output), () => columns)(await client.segments.list().all())
    },
  )
}

function getCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('get', 'Prints the filter of a segment.', ['segments get vips'])
  return addConnectionOptions(command.argument('<key>', 'The key.')).action(async (key: string, options: Options) => {
    const { client } = await connect(environment, options, { scope: 'schema:read' })
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
      const { name, description } = options
      const { client } = await connect(environment, options, { scope: 'schema:write people:read records:read' })
      const body = {
        key,
        filter,
        ...(name !== undefined && { name }),
        ...(description !== undefined && { description }),
      }
      const value = await client.segments.create(body)
      const warnings = (value.warnings ?? []).map(({ path, message }) => `Warning: ${path} ${message}`)
      printResult(options, { value, messages: [`Created the segment ${value.key}.`, ...warnings] })
    },
  )
}

function deleteCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('delete', 'Deletes a segment. The people stay.', ['segments delete vips'])
  return addConnectionOptions(command.argument('<key>', 'The key.')).action(async (key: string, options: Options) => {
    const { client } = await connect(environment, options, { scope: 'schema:write' })
    await client.segments.delete(key)
    printResult(options, { value: { key }, messages: [`Deleted the segment ${key}.`] })
  })
}

function peopleCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('people', 'Lists the people of a segment, newest first.', [
    'segments people vips',
    'segments people vips --sort last_name --fields external_id,email --output csv --limit all',
  ]).argument('<key>', 'The key.')
  return addConnectionOptions(addListOptions(command)).action(
    async (key: string, options: ConnectionOptions & ListOptions) => {
      const { client } = await connect(environment, options, { scope: 'schema:read people:read records:read' })
      await printListing('people', options, selection => peopleOf(client, key, selection))
    },
  )
}
