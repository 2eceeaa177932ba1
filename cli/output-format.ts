import { styleText } from 'node:util'
import { type Command, Option } from 'commander'
import { stringify } from 'csv-stringify/sync'
import { visible } from './visible.ts'

/** The formats of the commands that print rows. */
export type OutputFormat = 'table' | 'json' | 'csv'

/** A row as the service returns it. */
export type Row = Record<string, unknown>

/** A column of a table and of CSV. `textOf` shortens a value for a table. */
export type Column = { name: string; read: (row: Row) => unknown; textOf?: (value: unknown) => string }

const maxCellCharacters = 60

/** Adds the option `--output`. */
export function addOutputOption(command: Command): Command {
  return command.addOption(
    new Option('--output <format>', 'The format: json prints one line per row.')
      .choices(['table', 'json', 'csv'])
      .default(undefined, 'table on a terminal, else json'),
  )
}

/** The format that was chosen, or that of standard output. */
export const outputFormat = (chosen: OutputFormat | undefined): OutputFormat =>
  chosen ?? (process.stdout.isTTY ? 'table' : 'json')

/**
 * Returns a function that prints rows on standard output, as many times as rows arrive. The first rows decide the columns and their
 * widths. JSON has whole rows.
 */
export function createRowPrinter(
  format: OutputFormat,
  columnsOf: (rows: readonly Row[]) => Column[],
): (rows: readonly Row[]) => void {
  if (format === 'json') return rows => printText(rows.map(jsonLine).join(''))
  if (format === 'csv') return createCsvPrinter(columnsOf)
  return createTablePrinter(columnsOf)
}

const printText = (text: string) => void process.stdout.write(text)

/** A line of JSON. Characters that move a cursor or change the direction of the text are escaped, so the value stays the same. */
export const jsonLine = (value: unknown): string =>
  `${JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeJson)}\n`

const escapeJson = (character: string): string =>
  character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

function createCsvPrinter(columnsOf: (rows: readonly Row[]) => Column[]) {
  let columns: Column[] | undefined
  return (rows: readonly Row[]) => {
    const header = columns ? [] : [columnsOf(rows).map(({ name }) => name)]
    columns ??= columnsOf(rows)
    const cells = rows.map(row => columns!.map(({ read }) => csvCell(read(row))))
    const text = stringify([...header, ...cells])
    printText(process.stdout.isTTY ? text.split('\n').map(visible).join('\n') : text)
  }
}

const csvCell = (value: unknown): string => (value === undefined || value === null ? '' : plainText(value))

const plainText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function createTablePrinter(columnsOf: (rows: readonly Row[]) => Column[]) {
  let columns: Column[] | undefined
  let widths: number[] = []
  return (rows: readonly Row[]) => {
    if (rows.length === 0) return
    const isFirst = columns === undefined
    columns ??= columnsOf(rows)
    const cells = rows.map(row => columns!.map(column => tableCell(column, row)))
    const header = columns.map(({ name }) => visible(name))
    if (isFirst) widths = header.map((name, at) => Math.max(name.length, ...cells.map(line => line[at]!.length)))
    const lines = cells.map(line => `${aligned(line, widths)}\n`)
    if (isFirst) lines.unshift(`${styleText('bold', aligned(header, widths), { stream: process.stdout })}\n`)
    printText(lines.join(''))
  }
}

const aligned = (cells: string[], widths: number[]): string =>
  cells
    .map((cell, at) => cell.padEnd(widths[at]!))
    .join('  ')
    .trimEnd()

function tableCell({ read, textOf = plainText }: Column, row: Row): string {
  const value = read(row)
  const text = value === undefined || value === null ? '' : visible(textOf(value))
  return text.length > maxCellCharacters ? `${text.slice(0, maxCellCharacters - 1)}…` : text
}
