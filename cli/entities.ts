import type { Command } from 'commander'
import { givenOf, newPlainCommand, UsageError } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { addFormatOption, type FormatOption, formatOf, printRow, printRows, type Row } from './print-rows.ts'
import { entityColumns, fieldsFor, membersOf } from './questions/columns.ts'
import { addConditionOptions, type ConditionOptions, readCondition } from './questions/condition.ts'
import {
  addFieldsOption,
  addLabelsOption,
  addLimitOption,
  addListOptions,
  type ListOptions,
  linksOption,
  printListing,
  type Selection,
} from './questions/list-options.ts'
import { type Reads, readsOf } from './questions/reads.ts'

type Kind = 'people' | 'records'
type Options = ConnectionOptions & { stack?: string }
type GetOptions = Options & FormatOption & { id?: true; at?: string; fields?: string[]; labels?: true; links?: 'id' }

export const peopleCommand = (environment: NodeJS.ProcessEnv): Command =>
  entitiesCommand('people', 'Reads, lists, filters, searches and counts people.', environment)

export const recordsCommand = (environment: NodeJS.ProcessEnv): Command =>
  entitiesCommand('records', 'Reads, lists, filters, searches and counts the records of a stack.', environment)

function entitiesCommand(kind: Kind, description: string, environment: NodeJS.ProcessEnv): Command {
  const examples =
    kind === 'people'
      ? ['people search "ada lovlace"', 'people filter --where last_name=Lovelace --format json', 'people count']
      : ['records list --stack orders --sort created_at:desc', 'records count --stack orders --where state=active']
  return newPlainCommand(kind, description, examples)
    .addCommand(getCommand(kind, environment))
    .addCommand(listCommand(kind, environment))
    .addCommand(filterCommand(kind, environment))
    .addCommand(searchCommand(kind, environment))
    .addCommand(countCommand(kind, environment))
}

/** Creates a subcommand with the options of the connection, and for records with `--stack`. */
function subcommand(kind: Kind, name: string, description: string, examples: string[]): Command {
  const withStack = kind === 'people' ? '' : ' --stack orders'
  const lines = examples.map(example => `${kind} ${name}${withStack}${example && ` ${example}`}`)
  const command = newPlainCommand(name, description, lines)
  if (kind === 'records') command.requiredOption('--stack <key>', 'The stack of the records.')
  return command
}

/** A token that the command creates itself may read whatever a filter or an included relationship leads to. */
const scope = 'people:read records:read'

async function openReads(environment: NodeJS.ProcessEnv, options: Options, more = ''): Promise<Reads> {
  const { client } = await connect(environment, options, { scope: scope + more })
  return readsOf(client, options.stack)
}

function getCommand(kind: Kind, environment: NodeJS.ProcessEnv): Command {
  const example = kind === 'people' ? 'ada' : 'o-1'
  const command = subcommand(kind, 'get', `Prints one of the ${kind}.`, [example, `${example} --format json`])
    .argument('<external_id>', 'The external identifier.')
    .option('--id', 'The argument is the internal identifier.')
    .option('--at <time>', 'Print the values of this time: 2026-01-31T09:00:00Z.')
  return addConnectionOptions(
    addFormatOption(addLabelsOption(addFieldsOption(command)).addOption(linksOption())),
  ).action((name: string, options: GetOptions) => get(kind, environment, name, options))
}

async function get(kind: Kind, environment: NodeJS.ProcessEnv, name: string, options: GetOptions) {
  const reads = await openReads(environment, options, options.at === undefined ? '' : ' changes:read')
  const read = givenOf(options, 'at', 'labels', 'links')
  const { label, relationship_labels, ...whole } = (await reads.get(options.id ? { id: name } : name, read)) as Row
  const selected = options.fields ? selectFields(whole, options.fields) : whole
  const entity = options.labels ? { label, ...selected, relationship_labels } : selected
  const format = formatOf(options)
  if (format === 'table') return printRows(options, ['field', { name: 'value', isWhole: true }], membersOf(entity))
  const fields = [...(options.labels ? ['label'] : []), ...(fieldsFor(options.fields, format, kind) ?? [])]
  return printRow(format, entityColumns(fields, [], format)([entity]), entity)
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

function listCommand(kind: Kind, environment: NodeJS.ProcessEnv): Command {
  const command = subcommand(kind, 'list', `Lists ${kind}, newest first.`, [
    '--sort created_at --limit 10',
    '--fields external_id,created_at --format csv --limit all',
  ])
  return addConnectionOptions(addListOptions(command)).action(async (options: Options & ListOptions) => {
    const reads = await openReads(environment, options)
    await printListing(kind, options, selection => reads.list(selection))
  })
}

function filterCommand(kind: Kind, environment: NodeJS.ProcessEnv): Command {
  const examples =
    kind === 'people'
      ? ['--where last_name=Lovelace', `--filter '{"email": {"$ends_with": "@example.org"}}' --sort last_name:desc`]
      : ['--where attribute_values.status=paid', `--filter '{"attribute_values.total": {"$gte": 100}}' --include buyer`]
  const command = subcommand(kind, 'filter', `Lists the ${kind} that match a filter, newest first.`, examples)
  const withConditions = addConditionOptions(command, kind === 'people')
  return addConnectionOptions(addListOptions(withConditions)).action(
    async (options: Options & ListOptions & ConditionOptions) => {
      const filter = await readCondition(environment, options)
      if (filter === undefined)
        throw new UsageError(`A condition is missing. Use --where or --filter, or ${kind} list.`)
      const reads = await openReads(environment, options)
      await printListing(kind, options, selection => reads.filter(filter, selection))
    },
  )
}

function searchCommand(kind: Kind, environment: NodeJS.ProcessEnv): Command {
  const description =
    kind === 'people'
      ? 'Finds people by name, email, phone or identifier, also misspelt ones. The best match comes first.'
      : 'Finds records by the attributes that are declared searchable, also misspelt ones. The best match comes first.'
  const examples = kind === 'people' ? ['"ada lovlace"', 'ada@example.org --limit 1 --format json'] : ['"blue kettle"']
  const command = subcommand(kind, 'search', description, examples).argument('<text>', 'The words to find.')
  const withOptions = addFormatOption(addLimitOption(addLabelsOption(addFieldsOption(command))))
  return addConnectionOptions(withOptions).action(async (text: string, options: Options & ListOptions) => {
    const reads = await openReads(environment, options)
    const { fields } = options
    const convert = (entity: Row) =>
      fields ? { ...selectFields(entity, fields), ...givenOf(entity, 'label', 'relationship_labels') } : entity
    const search = (selection: Selection) => reads.search(text, givenOf(selection, 'size', 'labels'))
    await printListing(kind, options, search, { maxSize: 100, convert })
  })
}

function countCommand(kind: Kind, environment: NodeJS.ProcessEnv): Command {
  const description = `Prints the number of ${kind}, or of those that match. --format json also prints the number of the last change that it includes.`
  const command = subcommand(kind, 'count', description, ['', '--where state=active'])
  const withConditions = addFormatOption(addConditionOptions(command, kind === 'people'))
  return addConnectionOptions(withConditions).action(async (options: Options & ConditionOptions & FormatOption) => {
    const filter = await readCondition(environment, options)
    const reads = await openReads(environment, options)
    const value = await reads.count(filter)
    if (options.format === undefined) return void process.stdout.write(`${value.count}\n`)
    await printRow(options.format, ['count', 'sequence'], value)
  })
}
