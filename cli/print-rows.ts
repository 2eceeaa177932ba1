import { styleText } from 'node:util'
import { stringify } from 'csv-stringify/sync'
import stringWidth from 'string-width'
import { writeAll } from './files.ts'
import { visible } from './terminal.ts'

export type RowFormat = 'table' | 'json' | 'csv' | 'ndjson'

/** The option `--format`. */
export type FormatOption = { format?: RowFormat }

/** A row as the service returns it. */
export type Row = Record<string, unknown>

/** A column of a table and of CSV: a member's name, or a function of the row. `textOf` shortens a value for a table. */
export type Column = string | ColumnOf
export type Columns = readonly Column[] | ((rows: readonly Row[]) => readonly Column[])
type ColumnOf = { name: string; read?: (row: Row) => unknown; textOf?: (value: unknown) => string; isWhole?: true }

/** The rows of a list, as they arrive. */
export type Rows = AsyncIterable<object> | Iterable<object>

/** Replaces the people of an object by their names. */
export const withNames = <Row extends { people: readonly { id: string; external_id: string | null }[] }>({
  people,
  ...row
}: Row): Omit<Row, 'people'> & { people: string } => ({
  ...row,
  people: people.map(({ id, external_id }) => external_id ?? id).join(' '),
})

/** Whether the format prints whole rows instead of columns. */
export const isJson = (format: RowFormat): boolean => format === 'json' || format === 'ndjson'

/** A column of words that are separated by spaces in a table. */
export const wordsColumn = (name: string): ColumnOf => ({ name, textOf: words => (words as string[]).join(' ') })

/** The chosen format, or the default for standard output. */
export const formatOf = ({ format }: FormatOption): RowFormat => format ?? (process.stdout.isTTY ? 'table' : 'ndjson')

/** Prints one row: in JSON it is the value itself, not an array. */
export const printRow = (format: RowFormat, columns: readonly Column[], row: object): Promise<void> =>
  printRows({ format: format === 'json' ? 'ndjson' : format }, columns, [row])

/**
 * Prints rows on standard output, in batches as they arrive, with back-pressure. JSON has whole rows. The first batch
 * of a table determines its widths, and its columns if `columns` is a function.
 */
export async function printRows(options: FormatOption, columns: Columns, rows: Rows): Promise<void> {
  const columnsOf = (rows: readonly Row[]) =>
    (typeof columns === 'function' ? columns(rows) : columns).map(each =>
      typeof each === 'string' ? { name: each } : each,
    )
  await writeAll(process.stdout, printers[formatOf(options)](inBatches(rows), columnsOf))
}

/** The first items of a listing. `list` gets the size of a page, which is at most the limit. */
export async function* firstOf<Item>(
  limit: number,
  maxSize: number,
  list: (size: number) => AsyncIterable<Item>,
): AsyncGenerator<Item> {
  let left = limit
  if (left <= 0) return
  for await (const item of list(Math.min(limit, maxSize))) {
    yield item
    left -= 1
    if (left === 0) return
  }
}

const rowsPerBatch = 500

/** Yields at least one batch, which is empty if there are no rows. */
async function* inBatches(rows: Rows): AsyncGenerator<Row[]> {
  let batch: Row[] = []
  for await (const row of rows)
    if (batch.push(row as Row) >= rowsPerBatch) {
      yield batch
      batch = []
    }
  yield batch
}

type Printer = (batches: AsyncIterable<Row[]>, columnsOf: (rows: Row[]) => ColumnOf[]) => AsyncIterable<string>

const printers: Record<RowFormat, Printer> = {
  async *json(batches) {
    let start = '['
    for await (const rows of batches) {
      if (rows.length === 0) continue
      yield start + rows.map(jsonOf).join(',')
      start = ','
    }
    yield start === '[' ? '[]\n' : ']\n'
  },
  async *ndjson(batches) {
    for await (const rows of batches) yield rows.map(row => `${jsonOf(row)}\n`).join('')
  },
  async *csv(batches, columnsOf) {
    let columns: ColumnOf[] | undefined
    for await (const rows of batches) {
      const header = columns ? [] : [columnsOf(rows).map(({ name }) => name)]
      columns ??= columnsOf(rows)
      const cells = rows.map(row => columns!.map(column => readCell(column, row)))
      const text = stringify([...header, ...cells], csvOptions)
      yield process.stdout.isTTY ? text.split('\n').map(visible).join('\n') : text
    }
  },
  async *table(batches, columnsOf) {
    let columns: ColumnOf[] | undefined
    let widths: number[] = []
    for await (const rows of batches) {
      if (rows.length === 0) continue
      const isFirst = columns === undefined
      columns ??= columnsOf(rows)
      const cells = rows.map(row => columns!.map(column => tableCell(column, row)))
      const header = columns.map(({ name }) => visible(name))
      if (isFirst) widths = header.map((_, at) => Math.max(...[header, ...cells].map(line => widthOf(line[at]!))))
      if (isFirst) yield `${styleText('bold', alignCells(header, widths), { stream: process.stdout })}\n`
      yield cells.map(line => `${alignCells(line, widths)}\n`).join('')
    }
  },
}

/** JSON in which characters that move a cursor or change the direction of the text are escaped, so that the value stays the same. */
const jsonOf = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
    character
      .split('')
      .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/**
 * An apostrophe is put before a text that a spreadsheet would run as a formula. Lists and objects are JSON, which is no
 * formula.
 */
const csvOptions = {
  escape_formulas: true,
  cast: { boolean: String, object: (value: object) => ({ value: JSON.stringify(value), escape_formulas: false }) },
}

const readCell = ({ name, read }: ColumnOf, row: Row): unknown => (read ? read(row) : row[name])

/** The number of terminal columns that a text takes. The test for ASCII is a fast path. */
const widthOf = (text: string): number => (/^[ -~]*$/.test(text) ? text.length : stringWidth(text))

const maxCellWidth = 60
const graphemes = new Intl.Segmenter()

function tableCell(column: ColumnOf, row: Row): string {
  const value = readCell(column, row)
  const { textOf = (each: unknown) => (typeof each === 'string' ? each : JSON.stringify(each)) } = column
  const text = value === undefined || value === null ? '' : visible(textOf(value))
  if (column.isWhole || widthOf(text) <= maxCellWidth) return text
  let [start, width] = ['', 0]
  for (const { segment } of graphemes.segment(text)) {
    width += widthOf(segment)
    if (width >= maxCellWidth) break
    start += segment
  }
  return `${start}…`
}

/** Pads cells to widths on a terminal, where a character takes 0 to 2 columns. */
const alignCells = (cells: string[], widths: number[]): string =>
  cells
    .map((cell, at) => cell + ' '.repeat(Math.max(0, widths[at]! - widthOf(cell))))
    .join('  ')
    .trimEnd()
