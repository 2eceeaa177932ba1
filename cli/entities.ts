import { givenOf, UsageError } from './command.ts'
import { type ConnectionOptions, connect } from './connection.ts'
import { type KithCommand, newPlainCommand } from './kith-command.ts'
import { formatOf, printRow, printRows, type Row } from './print-rows.ts'
import { entityColumns, fieldsFor, membersOf } from './questions/columns.ts'
import { conditions, conditionsOfPeople, readCondition } from './questions/condition.ts'
import {
  fieldsOption,
  labelsOption,
  limitOption,
  linksOption,
  listOptions,
  printListing,
  type Selection,
} from './questions/list-options.ts'
import { readsOf } from './questions/reads.ts'
import { printWarnings } from './terminal.ts'

type Kind = 'people' | 'records'

export const peopleCommand = (environment: NodeJS.ProcessEnv) =>
  entitiesCommand('people', 'Reads, lists, filters, searches and counts people.', environment)

export const recordsCommand = (environment: NodeJS.ProcessEnv) =>
  entitiesCommand('records', 'Reads, lists, filters, searches and counts the records of a stack.', environment)

/**
 * The scopes of a token that the command creates itself. A filter or an included relationship may lead to people and
 * records.
 */
const scope = 'people:read records:read'

type StackCommand = KithCommand<[], { stack?: string }, never>

function entitiesCommand(kind: Kind, description: string, environment: NodeJS.ProcessEnv) {
  const isOfPeople = kind === 'people'
  const either = <T>(people: T, records: T): T => (isOfPeople ? people : records)
  const conditionsOfKind = either(conditionsOfPeople, conditions)
  const entities = newPlainCommand(environment, kind, description).examples(
    ...either(
      ['people search "ada lovlace"', 'people filter --where last_name=Lovelace --format json', 'people count'],
      ['records list --stack orders --sort created_at:desc', 'records count --stack orders --where state=active'],
    ),
  )
  /** Adds a subcommand, for records with `--stack`. */
  const add = (name: string, description: string, examples: string[]): StackCommand => {
    const words = `${kind} ${name}${either('', ' --stack orders')}`
    const command: StackCommand = entities
      .addPlain(name, description)
      .examples(...examples.map(example => `${words} ${example}`.trim()))
    return isOfPeople ? command : command.option('--stack <key>', 'The stack of the records.', { required: true })
  }
  const openReads = async (options: ConnectionOptions & { stack?: string }, more = '') => {
    const client = await connect(environment, options, { scope: scope + more })
    return readsOf(client, options.stack)
  }
  const example = either('ada', 'o-1')
  add('get', `Prints one of the ${kind}.`, [example, `${example} --format json`])
    .argument('<external_id>', 'The external identifier.')
    .option('--id', 'The argument is the internal identifier.')
    .option('--at <time>', 'Print the values of this time: 2026-01-31T09:00:00Z.')
    .option(...fieldsOption)
    .option(...labelsOption)
    .option(...linksOption)
    .format()
    .connection()
    .action(async (name, options) => {
      const reads = await openReads(options, options.at === undefined ? '' : ' changes:read')
      const read = givenOf(options, 'at', 'labels', 'links')
      const { label, relationship_labels, ...whole } = (await reads.get(options.id ? { id: name } : name, read)) as Row
      const selected = options.fields ? selectFields(whole, options.fields) : whole
      const entity = options.labels ? { label, ...selected, relationship_labels } : selected
      const format = formatOf(options)
      if (format === 'table') return printRows(options, ['field', { name: 'value', isWhole: true }], membersOf(entity))
      const fields = [...(options.labels ? ['label'] : []), ...(fieldsFor(options.fields, format, kind) ?? [])]
      return printRow(format, entityColumns(fields, [], format)([entity]), entity)
    })
  add('list', `Lists ${kind}, newest first.`, [
    '--sort created_at --limit 10',
    '--fields external_id,created_at --format csv --limit all',
  ])
    .with(listOptions)
    .connection()
    .action(async options => {
      const reads = await openReads(options)
      await printListing(kind, options, selection => reads.list(selection))
    })
  const filters = either(
    ['--where last_name=Lovelace', `--filter '{"email": {"$ends_with": "@example.org"}}' --sort last_name:desc`],
    ['--where attribute_values.status=paid', `--filter '{"attribute_values.total": {"$gte": 100}}' --include buyer`],
  )
  add('filter', `Lists the ${kind} that match a filter, newest first.`, filters)
    .with(conditionsOfKind)
    .with(listOptions)
    .connection()
    .action(async options => {
      const filter = await readCondition(environment, options)
      if (filter === undefined)
        throw new UsageError(`A condition is missing. Use --where or --filter, or ${kind} list.`)
      const reads = await openReads(options)
      await printListing(kind, options, selection => reads.filter(filter, selection))
    })
  const found = either(
    'people by name, email, phone or identifier',
    'records by the attributes that are declared searchable',
  )
  const searches = either(['"ada lovlace"', 'ada@example.org --limit 1 --format json'], ['"blue kettle"'])
  add('search', `Finds ${found}, also misspelt ones. The best match comes first.`, searches)
    .argument('<text>', 'The words to find.')
    .option(...fieldsOption)
    .option(...labelsOption)
    .option(...limitOption)
    .format()
    .connection()
    .action(async (text, options) => {
      const reads = await openReads(options)
      const { fields } = options
      const convert = (entity: Row) =>
        fields ? { ...selectFields(entity, fields), ...givenOf(entity, 'label', 'relationship_labels') } : entity
      const search = (selection: Selection) => reads.search(text, givenOf(selection, 'size', 'labels'))
      await printListing(kind, options, search, { maxSize: 100, convert })
    })
  const counted = `the number of ${kind}, or of those that match`
  add('count', `Prints ${counted}. --format json also prints the number of the last change that it includes.`, [
    '',
    '--where state=active',
  ])
    .with(conditionsOfKind)
    .format()
    .connection()
    .action(async options => {
      const filter = await readCondition(environment, options)
      const reads = await openReads(options)
      const { warnings, ...value } = await reads.count(filter)
      printWarnings(warnings)
      if (options.format === undefined) return void process.stdout.write(`${value.count}\n`)
      await printRow(options.format, ['count', 'sequence'], value)
    })
  return entities
}

/** The named members of an entity. Throws a UsageError if one does not exist. */
function selectFields(entity: Row, fields: readonly string[]): Row {
  const selected: Row = {}
  for (const field of fields) {
    const key = /^attribute_values\.(.+)$/.exec(field)?.[1]
    if (key === undefined && !(field in entity))
      throw new UsageError(`${JSON.stringify(field)} is not a field. The fields are ${Object.keys(entity).join(', ')}.`)
    if (key === undefined) selected[field] = entity[field]
    else {
      const values = entity.attribute_values as Row
      selected.attribute_values = {
        ...(selected.attribute_values as Row | undefined),
        ...(key in values && { [key]: values[key] }),
      }
    }
  }
  return selected
}
