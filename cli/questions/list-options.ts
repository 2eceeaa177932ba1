import { InvalidArgumentError } from 'commander'
import type { Page } from '../../client/index.ts'
import { givenOf, wholeNumber } from '../command.ts'
import type { OptionsOf, PlainCommand } from '../kith-command.ts'
import { type FormatOption, formatOf, printRows, type Row } from '../print-rows.ts'
import { printStderr, printWarnings } from '../terminal.ts'
import { entityColumns, fieldsFor } from './columns.ts'
import type { Pages } from './reads.ts'

export const defaultLimit = 50

export const fieldsOption = [
  '--fields <names>',
  'Only these fields, separated by commas: external_id,attribute_values.city.',
  { parse: parseList },
] as const

export const labelsOption = [
  '--labels',
  'Also show names for people to read: `label`, and those of targets. Tables begin with `label`.',
] as const

export const linksOption = [
  '--links <form>',
  'Show the targets of relationships by their internal identifiers.',
  { choices: ['id'] },
] as const

export const limitOption = [
  '--limit <count>',
  `The most to print, or all. Default: ${defaultLimit}.`,
  { parse: parseLimit },
] as const

/** Adds `--fields`, `--sort`, `--include`, `--labels`, `--links`, `--limit` and `--format`. */
export const listOptions = (command: PlainCommand) =>
  command
    .option(...fieldsOption)
    .option('--sort <field[:desc]>', 'The order: last_name, created_at:desc, attribute_values.total:desc.', {
      parse: parseSort,
    })
    .option('--include <keys>', 'Also show the targets of these relationships, separated by commas.', {
      parse: parseList,
    })
    .option(...labelsOption)
    .option(...linksOption)
    .option(...limitOption)
    .format()

export type ListOptions = OptionsOf<typeof listOptions>

/** Parses names that are separated by commas. */
function parseList(text: string): string[] {
  const names = text.split(',').map(name => name.trim())
  if (names.includes('')) throw new InvalidArgumentError('Give names, separated by commas.')
  return names
}

function parseSort(text: string): { field: string; direction: 'asc' | 'desc' } {
  const [, field, direction = 'asc'] = /^(.+?)(?::(asc|desc))?$/.exec(text.trim()) ?? []
  if (field === undefined) throw new InvalidArgumentError('Give a field, or field:desc.')
  return { field, direction: direction as 'asc' | 'desc' }
}

function parseLimit(text: string): number {
  return text === 'all' ? Number.POSITIVE_INFINITY : wholeNumber(1)(text)
}

type Kind = 'people' | 'records'
export type Selection = { size: number } & Pick<ListOptions, 'fields' | 'include' | 'labels' | 'links' | 'sort'>

/** The maximum page size of the service, and a conversion of the items that the service does not do. */
type ListingOptions = { maxSize?: number; convert?: (item: Row) => Row }

/** Prints the entities of a listing up to the limit. `list` starts the listing with the selection of the options. */
export async function printListing(
  kind: Kind,
  options: ListOptions,
  list: (selection: Selection) => Pages,
  { maxSize = 500, convert = item => item }: ListingOptions = {},
): Promise<void> {
  const { limit = defaultLimit, include } = options
  const format = formatOf(options)
  const fields = fieldsFor(options.fields, format, kind)
  const size = Math.min(limit, maxSize)
  const selection = { size, ...(fields && { fields }), ...givenOf(options, 'include', 'labels', 'links', 'sort') }
  const shown = new LimitedRows(limit)
  let warned = false
  const rows = shown.read(list(selection).pages(), convert, ({ warnings }) => {
    if (!warned) printWarnings(warnings)
    warned = true
  })
  const columns = [...(options.labels ? ['label'] : []), ...(fields ?? [])]
  await printRows(options, entityColumns(columns, include ?? [], format), rows)
  shown.report({ one: kind === 'people' ? 'person' : 'record', many: kind }, options)
}

/** The rows of a listing up to a limit. It counts them. */
export class LimitedRows {
  readonly #limit: number
  #count = 0
  #hasMore = false

  constructor(limit: number) {
    this.#limit = limit
  }

  async *read<P extends Page<unknown>>(
    pages: AsyncIterable<P>,
    convert: (item: Row) => Row,
    onPage: (page: P) => void,
  ): AsyncGenerator<Row> {
    for await (const page of pages) {
      onPage(page)
      const rows = page.items.slice(0, this.#limit - this.#count) as Row[]
      yield* rows.map(convert)
      this.#count += rows.length
      this.#hasMore = page.has_more || rows.length < page.items.length
      if (this.#count >= this.#limit) return
    }
  }

  /** Reports the number of rows after a table, and in any format if the default limit has cut the output. */
  report({ one, many }: { one: string; many: string }, options: FormatOption & { limit?: number }): void {
    const more = this.#hasMore ? '. There are more: use --limit <count>, or --limit all.' : ''
    if (formatOf(options) === 'table' || (this.#hasMore && options.limit === undefined))
      printStderr(`${this.#count} ${this.#count === 1 ? one : many}${more}`)
  }
}
