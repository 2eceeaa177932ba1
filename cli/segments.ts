import { givenOf, UsageError } from './command.ts'
import { confirm } from './confirm.ts'
import { connect } from './connection.ts'
import { newPlainCommand } from './kith-command.ts'
import { conditionsOfPeople, readCondition } from './questions/condition.ts'
import { listOptions, printListing } from './questions/list-options.ts'
import { peopleOf } from './questions/reads.ts'
import { warningLines } from './terminal.ts'

const keyArgument = ['<key>', 'The key.'] as const

export function segmentsCommand(environment: NodeJS.ProcessEnv) {
  const segments = newPlainCommand(
    environment,
    'segments',
    'Manages segments: filters of people with a name.',
  ).examples(
    `segments create vips --filter '{"attribute_values.revenue": {"$gte": 1000}}'`,
    'segments people vips --sort last_name',
  )
  segments
    .addList(['key', 'name', 'filter'], 'list', 'Lists the segments.')
    .examples('segments list', 'segments list --format csv')
    .atService('schema:read', client => client.segments.list())
  segments
    .add('get', 'Prints the filter of a segment.')
    .examples('segments get vips')
    .argument(...keyArgument)
    .atService('schema:read', async (client, key) => {
      const value = await client.segments.get(key)
      return { value, lines: [JSON.stringify(value.filter, null, 2)] }
    })
  segments
    .add('create', 'Creates a segment from a filter of people.')
    .examples(
      `segments create vips --filter '{"attribute_values.revenue": {"$gte": 1000}}'`,
      'segments create english --name "English speakers" --where language=en',
    )
    .argument('<key>', 'The key, by which filters name the segment.')
    .option('--name <name>', 'A name for people to read.')
    .option('--description <text>', 'A description.')
    .with(conditionsOfPeople)
    .connection()
    .action(async (key, options) => {
      const filter = await readCondition(environment, options)
      if (filter === undefined) throw new UsageError('A condition is missing. Use --where or --filter.')
      const client = await connect(environment, options, { scope: 'schema:write people:read records:read' })
      const value = await client.segments.create({ key, filter, ...givenOf(options, 'name', 'description') })
      return { value, messages: [`Created the segment ${value.key}.`, ...warningLines(value.warnings)] }
    })
  segments
    .add('delete', 'Deletes a segment. The people stay.')
    .examples('segments delete vips --yes')
    .argument(...keyArgument)
    .yes()
    .atService('schema:write', async (client, key, options) => {
      await confirm(options, `Delete the segment ${key}? The people stay.`)
      await client.segments.delete(key)
      return { value: { key }, messages: [`Deleted the segment ${key}.`] }
    })
  segments
    .addPlain('people', 'Lists the people of a segment, newest first.')
    .examples(
      'segments people vips',
      'segments people vips --sort last_name --fields external_id,email --format csv --limit all',
    )
    .argument(...keyArgument)
    .with(listOptions)
    .atService('schema:read people:read records:read', (client, key, options) =>
      printListing('people', options, selection => peopleOf(client, key, selection)),
    )
  return segments
}
