import { type Command, InvalidArgumentError } from 'commander'
import type { Aggregate, AggregateBody, Filter } from '../client/index.ts'
import { newPlainCommand } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRows } from './print-rows.ts'
import { addConditionOptions, type ConditionOptions, readCondition } from './questions/condition.ts'
import { createExactFetch } from './questions/exact-numbers.ts'
import { printStderr } from './stderr.ts'
import { visible } from './visible.ts'

type Group = NonNullable<AggregateBody['group_by']>[number]
type Measure = NonNullable<AggregateBody['measures']>[number]
type Named<T> = { name: string; value: T }

type Options = ConnectionOptions &
  ConditionOptions &
  FormatOption & { groupBy: Named<Group>[]; measure: Named<Measure>[]; timeZone?: string }

const units = ['day', 'week', 'month', 'quarter', 'year'] as const
const operations = ['count', 'sum', 'avg', 'min', 'max'] as const

export function aggregateCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Counts and measures groups of people, or of the records of a stack. The numbers are exact.'
  const command = newPlainCommand('aggregate', description, [
    'aggregate people --group-by language',
    'aggregate orders --group-by created_at:month --measure count --measure sum:attribute_values.total',
  ])
    .argument('<people|stack_key>', 'Either people or the key of a stack.')
    .option('--group-by <field[:unit]>', `A field, and for a time ${units.join(', ')} (repeatable).`, parseGroup, [])
    .option('--measure <operation[:field]>', `${operations.join(', ')} (repeatable). Default: count.`, parseMeasure, [])
    .option('--time-zone <name>', 'The time zone of the groups by time: Europe/Berlin. Default: UTC.')
  return addConnectionOptions(addFormatOption(addConditionOptions(command, true))).action(
    (owner: string, options: Options) => run(environment, owner, options),
  )
}

function parseGroup(text: string, groups: Named<Group>[]): Named<Group>[] {
  const [, field = text, unit] = /^(.+):([a-z]+)$/.exec(text) ?? []
  const by = units.find(each => each === unit)
  if (unit !== undefined && by === undefined) throw new InvalidArgumentError(`The units are ${units.join(', ')}.`)
  return [...groups, { name: text, value: by === undefined ? field : { field, by } }]
}

function parseMeasure(text: string, measures: Named<Measure>[]): Named<Measure>[] {
  const [word = '', field] = text.split(/:(.*)/, 2)
  const op = operations.find(each => each === word)
  if (op === undefined) throw new InvalidArgumentError(`The operations are ${operations.join(', ')}.`)
  return [...measures, { name: text, value: field === undefined ? { op } : { op, field } }]
}

async function run(environment: NodeJS.ProcessEnv, owner: string, options: Options) {
  const { groupBy, measure, timeZone: time_zone } = options
  const filter = await readCondition(environment, options)
  const body = {
    ...(filter && { filter }),
    group_by: groupBy.map(({ value }) => (typeof value === 'object' && time_zone ? { ...value, time_zone } : value)),
    ...(measure.length > 0 && { measures: measure.map(({ value }) => value) }),
  } as AggregateBody & { filter?: Filter }
  const exact = createExactFetch()
  const { client } = await connect(environment, options, { scope: 'people:read records:read', fetch: exact.fetch })
  await client.entities(owner).aggregate(body)
  await printGroups(options, exact.payload() as Aggregate)
}

async function printGroups(options: Options, { groups, sequence, skipped, warnings = [] }: Aggregate) {
  const { groupBy, measure } = options
  for (const { path, message } of warnings) printStderr(visible(`Warning: ${path} ${message}`))
  for (const { path, values } of skipped)
    printStderr(`${path}: ${values} values of another type than the attribute are not measured.`)
  const measures = measure.length > 0 ? measure.map(({ name }) => name) : ['count']
  const names = [...groupBy.map(({ name }) => name), ...measures]
  const format = formatOf(options)
  const rows = groups.map(({ by, measures: numbers }) =>
    Object.fromEntries([...by, ...numbers].map((value, at) => [names[at]!, value])),
  )
  await printRows(format, names, rows)
  if (format === 'table')
    printStderr(`${groups.length === 1 ? '1 group' : `${groups.length} groups`}, at change ${sequence}`)
}
