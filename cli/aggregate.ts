import { InvalidArgumentError } from 'commander'
import type { AggregateBody, AggregateLine, Filter } from '../client/index.ts'
import { parseWithAllDigits } from '../src/values/parse-json.ts'
import { UsageError, wholeNumber } from './command.ts'
import { connect } from './connection.ts'
import { newPlainCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { formatOf, printRows } from './print-rows.ts'
import { conditionsOfPeople, readCondition } from './questions/condition.ts'
import { printStderr, printWarnings } from './terminal.ts'

type Group = NonNullable<AggregateBody['group_by']>[number]
type Measure = NonNullable<AggregateBody['measures']>[number]
type Order = NonNullable<AggregateBody['sort']>[number]
type Named<T> = { name: string; value: T }
type Sort = Named<Pick<Order, 'direction'>>
/** A test of the measure with that name. */
type Having = Named<{ operator: string; operand: unknown }>

const units = ['day', 'week', 'month', 'quarter', 'year'] as const
const operations = ['count', 'count_distinct', 'sum', 'avg', 'min', 'max', 'median', 'percentile'] as const
const operators = { '>=': '$gte', '<=': '$lte', '!=': '$neq', '>': '$gt', '<': '$lt', '=': '$eq' } as const

export const aggregateCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'aggregate',
    'Counts and measures groups of people, or of the records of a stack. The numbers are exact.',
  )
    .examples(
      'aggregate people --group-by language',
      'aggregate orders --group-by created_at:month --measure count --measure sum:attribute_values.total',
      'aggregate orders --group-by attribute_values.buyer.attribute_values.country',
      'aggregate orders --group-by attribute_values.buyer --measure sum:attribute_values.total --sort sum:attribute_values.total:desc --limit 10',
    )
    .argument('<people|stack_key>', 'Either people or the key of a stack.')
    .with(aggregateOptions)
    .action((owner, options) => run(environment, owner, options))

const aggregateOptions = (command: PlainCommand) =>
  command
    .option(
      '--group-by <field[:unit]>',
      `A field, also across a relationship, and for a time ${units.join(', ')} (repeatable).`,
      { parse: parseGroup, default: [] },
    )
    .option(
      '--measure <operation[:field]>',
      `${operations.join(', ')} (repeatable): percentile:0.95:attribute_values.total. Default: count.`,
      { parse: parseMeasure, default: [] },
    )
    .option(
      '--having <test>',
      'Only groups whose measure passes the test (repeatable; all must): count>=2. The operators are >=, <=, >, <, = and !=.',
      { parse: parseHaving, default: [] },
    )
    .option('--sort <group or measure[:desc]>', 'The order of the groups (repeatable): count:desc.', {
      parse: parseSort,
      default: [],
    })
    .option('--limit <count>', 'The most groups to print. Default: all.', { parse: wholeNumber(1) })
    .option('--time-zone <name>', 'The time zone of the groups by time: Europe/Berlin. Default: UTC.')
    .with(conditionsOfPeople)
    .format()
    .connection()

type Options = OptionsOf<typeof aggregateOptions>

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
  if (op !== 'percentile') return [...measures, { name: text, value: field === undefined ? { op } : { op, field } }]
  const [part = '', ofField] = (field ?? '').split(/:(.*)/, 2)
  if (ofField === undefined || part.trim() === '' || Number.isNaN(Number(part)))
    throw new InvalidArgumentError('Give percentile:<0 to 1>:<field>.')
  return [...measures, { name: text, value: { op, field: ofField, p: Number(part) } }]
}

function parseSort(text: string, sorts: Sort[]): Sort[] {
  const [, name = text, direction] = /^(.+?)(?::(asc|desc))?$/.exec(text) ?? []
  return [...sorts, { name, value: direction === undefined ? {} : { direction: direction as 'asc' | 'desc' } }]
}

function parseHaving(text: string, tests: Having[]): Having[] {
  const [, name, sign, operand] = /^(.+?)(>=|<=|!=|>|<|=)(.+)$/.exec(text) ?? []
  if (name === undefined) throw new InvalidArgumentError('Give a measure, an operator and a value: count>=2.')
  const operator = operators[sign as keyof typeof operators]
  return [...tests, { name: name.trim(), value: { operator, operand: scalarOf(operand!.trim()) } }]
}

/** Parses a number. Any other text stays a text. */
const scalarOf = (text: string) => (/^-?\d/.test(text) && !Number.isNaN(Number(text)) ? Number(text) : text)

async function run(environment: NodeJS.ProcessEnv, owner: string, options: Options) {
  const { groupBy, measure, sort, having, limit, timeZone: time_zone } = options
  const filter = await readCondition(environment, options)
  const body = {
    ...(filter && { filter }),
    group_by: groupBy.map(({ value }) => (typeof value === 'object' && time_zone ? { ...value, time_zone } : value)),
    ...(measure.length > 0 && { measures: measure.map(({ value }) => value) }),
    ...(having.length > 0 && { having: having.map(test => havingOf(test, options)) }),
    ...(sort.length > 0 && { sort: sort.map(({ name, value }) => ({ ...placeOf(name, options), ...value })) }),
    ...(limit !== undefined && { limit }),
  } as AggregateBody & { filter?: Filter }
  const exact = createExactFetch()
  const client = await connect(environment, options, { scope: 'people:read records:read', fetch: exact.fetch })
  await printGroups(options, exactLines(client.entities(owner).groups(body), exact))
}

async function* exactLines(lines: AsyncIterable<unknown>, { nextLine }: ExactFetch): AsyncGenerator<AggregateLine> {
  for await (const _ of lines) yield nextLine() as AggregateLine
}

const measureNames = ({ measure }: Options) => (measure.length > 0 ? measure.map(({ name }) => name) : ['count'])

/** The place of the group or the measure with that name. Throws a UsageError if there is none. */
function placeOf(name: string, options: Options): Pick<Order, 'group' | 'measure'> {
  const group = options.groupBy.findIndex(each => each.name === name)
  const measure = measureNames(options).indexOf(name)
  if (group === -1 && measure === -1) throw new UsageError(`--sort ${name}: is neither a --group-by nor a --measure.`)
  return group === -1 ? { measure } : { group }
}

function havingOf({ name, value: { operator, operand } }: Having, options: Options) {
  const measure = measureNames(options).indexOf(name)
  if (measure === -1) throw new UsageError(`--having ${name}: is no --measure.`)
  return { measure, [operator]: operand }
}

type AggregateEnd = Exclude<AggregateLine, { by: unknown }>

async function printGroups(options: Options, lines: AsyncIterable<AggregateLine>) {
  const names = [...options.groupBy.map(({ name }) => name), ...measureNames(options)]
  const format = formatOf(options)
  let count = 0
  let end: AggregateEnd | undefined
  async function* rows() {
    for await (const line of lines)
      if ('by' in line) {
        count += 1
        yield Object.fromEntries([...line.by, ...line.measures].map((value, at) => [names[at]!, value]))
      } else end = line
  }
  await printRows(options, names, rows())
  const { sequence, skipped, warnings } = end!
  printWarnings(warnings)
  for (const { path, values } of skipped)
    printStderr(`${path}: not measured, of another type than the attribute: ${values}`)
  if (format === 'table') printStderr(`${count === 1 ? '1 group' : `${count} groups`}, at change ${sequence}`)
}

/**
 * `fetch` keeps the text of a streamed response. `nextLine` returns its next line, and keeps all digits of the numbers.
 */
type ExactFetch = { fetch: typeof fetch; nextLine: () => unknown }

function createExactFetch(): ExactFetch {
  let text = ''
  return {
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      text = ''
      const decoder = new TextDecoder()
      const keep = new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          text += decoder.decode(bytes, { stream: true })
          controller.enqueue(bytes)
        },
      })
      return new Response(response.body?.pipeThrough(keep) ?? null, response)
    },
    nextLine: () => {
      const end = text.indexOf('\n')
      const line = text.slice(0, end)
      text = text.slice(end + 1)
      return parseWithAllDigits(line)
    },
  }
}
