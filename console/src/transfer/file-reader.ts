import type { ImportMapping } from '@kith/client'
import { habitsOf } from '../../../transfer/cell-habits.ts'
import type { DateOrder, DecimalMark, OffsetOf } from '../../../transfer/cell-parser.ts'
import { findTarget, nothing, readOnlyColumnsOf } from '../../../transfer/columns.ts'
import {
  bodyOf,
  bytesOf,
  type CsvSettings,
  cellOf,
  cellsOfText,
  csvItems,
  type FileColumns,
  type Replacements,
  settingsOf as settingsOfFile,
  textOf,
} from '../../../transfer/csv.ts'
import { type Format, type OpenFile, openPieces } from '../../../transfer/file.ts'
import { recognizeColumns } from '../../../transfer/header-names.ts'
import { buildUnfitRefusal, type ImportItem } from '../../../transfer/item.ts'
import { ndjsonItems } from '../../../transfer/ndjson.ts'
import type { Pieces } from '../../../transfer/pieces.ts'
import type { Target } from '../../../transfer/target.ts'
import { momentOf } from '../entity/fields.ts'
import { attributePrefix } from '../filters/field-types.ts'

/** The fields of people or of a stack, by their possible column names. */
export type Targets = Map<string, Target>

/** The encodings of a file. `detected` detects it from the bytes. */
export const encodings = ['detected', 'utf-8', 'windows-1252', 'utf-16le'] as const
export type Encoding = (typeof encodings)[number]

/** The reading options that a person sets before an import. `detected` detects the value from the file. */
export type ReadOptions = {
  format: Format
  encoding: Encoding
  delimiter: string
  dateOrder: DateOrder | 'detected'
  /** `local` is the time zone of the browser. */
  offset: 'Z' | 'local' | 'none'
  empty: 'absent' | 'null'
  decimal: DecimalMark | 'detected'
  /** Words that mean yes, no and nothing, separated by commas. */
  trueWords: string
  falseWords: string
  nullWords: string
}

export const defaultReadOptions: Omit<ReadOptions, 'format'> = {
  encoding: 'detected',
  delimiter: 'detected',
  dateOrder: 'detected',
  offset: 'local',
  empty: 'absent',
  decimal: 'detected',
  trueWords: '',
  falseWords: '',
  nullWords: '',
}

/** The field of each column: a name of `targetsOf`, '' for an ignored column, null before a choice. */
export type Mapping = (string | null)[]

/**
 * The beginning of a CSV file: the names of its columns, and its first records with their lines. `sample` has the cells
 * of more records, to detect the notation of the file.
 */
export type CsvStart = {
  names: string[]
  delimiter: string
  encoding: string | undefined
  records: CsvStartRecord[]
  sample: string[][]
}

/** `fault` says why a record is malformed. Its only cell is then its text. */
type CsvStartRecord = { line: number; cells: string[]; fault?: string | undefined }

const previewRows = 20
const sampleRows = 1_000

const known = <Choice extends string>(choice: Choice | 'detected'): Choice | null =>
  choice === 'detected' ? null : choice

/** Throws if a word has two meanings. */
const settingsOf = ({ delimiter, dateOrder, offset, empty, decimal, ...words }: ReadOptions): CsvSettings =>
  settingsOfFile({
    ...{ delimiter: known(delimiter), dateOrder: known(dateOrder), empty, decimal: known(decimal) },
    offset: offset === 'local' ? localOffsetOf : offset === 'none' ? null : offset,
    true_words: words.trueWords.split(','),
    false_words: words.falseWords.split(','),
    null_words: words.nullWords.split(','),
  })

/**
 * The options for reading the records. `options` include the detected notation, so that preview, check and import
 * agree.
 */
export type Reading = {
  columns: FileColumns
  delimiter: string
  options: ReadOptions & { decimal: DecimalMark }
  /** Whether the file has dates in an order that only a person can decide. */
  isOrderOpen: boolean
}

type FixedCells = {
  /** Cells that are added to every record, by their fields. */
  constants?: ReadonlyMap<string, string>
  replacements?: Replacements
}

/** The reading of a file with a mapping. A column without a choice is ignored. */
export function readingOf(
  { names, delimiter, sample }: CsvStart,
  options: ReadOptions,
  mapping: Mapping,
  fields: Targets,
  { constants = new Map(), replacements = new Map() }: FixedCells = {},
): Reading {
  const targetOf = (field: string | null) => (field ? (findTarget(field, fields) ?? nothing) : nothing)
  const targets = mapping.map(targetOf)
  const columns = {
    targets: [...targets, ...[...constants.keys()].map(targetOf)],
    stateAt: readOnlyColumnsOf(names).includes('state') ? names.indexOf('state') : null,
    notices: [],
    constants: [...constants.values()].map(cellOf),
    replacements,
  }
  const found = habitsOf(sample, targets)
  const isOrderOpen = options.dateOrder === 'detected' && found.dateOrder === 'mixed'
  const foundOrder = found.dateOrder === 'mixed' ? null : found.dateOrder
  const decimal = known(options.decimal) ?? found.decimal ?? '.'
  const dateOrder = known(options.dateOrder) ?? foundOrder ?? 'detected'
  return { columns, delimiter, options: { ...options, decimal, dateOrder }, isOrderOpen }
}

const bodyOfCells = (cells: string[], { columns, options }: Reading) =>
  bodyOf(cells, columns, { ...settingsOf(options), decimal: options.decimal })

/** The fault of the options. Null without a fault. */
export function settingsFault(options: ReadOptions): string | null {
  try {
    settingsOf(options)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** The offset of the browser's time zone at a local time, such as +01:00. Null for a time that clocks skip. */
const localOffsetOf: OffsetOf = localTime => {
  if (momentOf(localTime) === undefined) return null
  const minutes = -new Date(localTime).getTimezoneOffset()
  const twoDigits = (value: number) => String(value).padStart(2, '0')
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return `${minutes < 0 ? '-' : '+'}${twoDigits(hours)}:${twoDigits(rest)}`
}

/** Reads the beginning of a CSV file. Throws if the file is empty, no CSV, or in another encoding. */
export async function readCsvStart(file: File, options: ReadOptions): Promise<CsvStart> {
  const start: CsvStart = { names: [], delimiter: ',', encoding: undefined, records: [], sample: [] }
  const opened = openFile(file, options)
  const plan = (head: { cells: string[]; delimiter: string }): FileColumns => {
    start.names = head.cells.map(cell => textOf(cell).trim())
    start.delimiter = head.delimiter
    return { targets: head.cells.map(() => nothing), stateAt: null, notices: [], constants: [] }
  }
  for await (const items of csvItems(opened.pieces, settingsOf(options), plan)) {
    for (const { line, original, refusal } of items) {
      const cells = Array.isArray(original) ? original.map(shownCell) : [new TextDecoder().decode(original)]
      if (Array.isArray(original)) start.sample.push(cells)
      if (start.records.length < previewRows) start.records.push({ line, cells, fault: refusal?.message })
    }
    if (start.sample.length >= sampleRows) break
  }
  start.encoding = opened.encoding()
  return start
}

/** The first lines of a file of JSON lines, unchanged. */
export async function readNdjsonStart(file: File, options: ReadOptions, owner: string): Promise<ImportItem[]> {
  const lines: ImportItem[] = []
  for await (const items of ndjsonItems(openFile(file, options).pieces, owner)) {
    lines.push(...items)
    if (lines.length >= previewRows) break
  }
  return lines.slice(0, previewRows)
}

/** The display text of a cell. A cell that is not UTF-8 is shown as Latin-1. */
export function shownCell(cell: string): string {
  try {
    return textOf(cell)
  } catch {
    return cell
  }
}

/** The mapping that the names of the columns suggest. */
function suggestMapping(names: string[], targets: Targets): Mapping {
  const readOnly = readOnlyColumnsOf(names)
  const given = names.map(name => (readOnly.includes(name) ? null : nameOfTarget(findTarget(name, targets))))
  // Two columns cannot become one field.
  const own = given.map((field, index) => (field !== null && given.indexOf(field) === index ? field : null))
  const open = names.map((name, index) => (given[index] || readOnly.includes(name) ? '' : name))
  const taken = own.flatMap(field => field ?? [])
  const recognized = recognizeColumns(open, targets, taken)
  return names.map((name, index) =>
    readOnly.includes(name) ? '' : (own[index] ?? nameOfTarget(recognized[index] ?? null)),
  )
}

const nameOfTarget = (target: Target | null): string | null => (target && target.to !== 'nothing' ? target.name : null)

/** The field of the attribute that a column would become. In an export, the column already has the full name. */
export const attributeFieldOf = (column: string): string =>
  column.startsWith(attributePrefix) ? column : attributePrefix + column

/** The canonical name of a field. */
export const fieldName = (field: string, targets: Targets): string => nameOfTarget(findTarget(field, targets)) ?? field

/** The mapping of an earlier file with the same header. A column whose field no longer exists has no choice. */
export function earlierMapping(
  { names }: CsvStart,
  earlier: readonly ImportMapping[],
  owner: string,
): ImportMapping | undefined {
  const header = JSON.stringify(names)
  return earlier.find(mapping => mapping.owner === owner && JSON.stringify(mapping.header) === header)
}

/**
 * The person's mapping if it fits the file, else the earlier or the suggested one. Other reading options can change the
 * columns of the file.
 */
export function mappingOf(
  { names }: CsvStart,
  mapping: Mapping,
  earlier: ImportMapping | undefined,
  targets: Targets,
): Mapping {
  if (mapping.length === names.length) return mapping
  if (!earlier) return suggestMapping(names, targets)
  return earlier.fields.map(field => (field === null ? '' : nameOfTarget(findTarget(field, targets))))
}

/** The fields to which several columns are mapped. */
export function repeatedFields(mapping: Mapping, targets: Targets): Set<string> {
  const names = mapping.filter(field => field).map(field => fieldName(field!, targets))
  return new Set(names.filter((name, index) => names.indexOf(name) !== index))
}

/** The values that an import would send for a record, by the index of the column, with their errors. */
export type PreviewRow = {
  line: number
  cells: { text: string; value: unknown; error: string | undefined }[]
  error: string | undefined
}

export function previewOf({ records, names }: CsvStart, reading: Reading): PreviewRow[] {
  return records.map(({ line, cells, fault }) => {
    if (fault !== undefined)
      return { line, error: fault, cells: cells.map(text => ({ text, value: undefined, error: undefined })) }
    const read = bodyOfCells(cells.map(cellOf), reading)
    const details = 'refusal' in read ? (read.refusal?.details ?? []) : []
    const body = read.body === null ? undefined : (JSON.parse(read.body) as Body)
    return {
      line,
      error: 'refusal' in read && details.length === 0 ? read.refusal?.message : undefined,
      cells: names.map((_, index) => {
        const target = reading.columns.targets[index]!
        const error = target.to === 'nothing' ? undefined : details.find(({ path }) => path === target.name)?.message
        return { text: cells[index] ?? '', value: convertedValue(body, target), error }
      }),
    }
  })
}

type Body = Record<string, unknown> & { attribute_values?: Record<string, unknown> }

function convertedValue(body: Body | undefined, target: Target): unknown {
  if (target.to === 'field') return body?.[target.key]
  return target.to === 'attribute' ? body?.attribute_values?.[target.key] : undefined
}

/** Reads all items of a file. `reading` is null for JSON lines. */
export const itemsOf = (pieces: Pieces, owner: string, reading: Reading | null): AsyncGenerator<ImportItem[]> =>
  reading === null ? ndjsonItems(pieces, owner) : csvItems(pieces, settingsOf(reading.options), () => reading.columns)

/** Reads a corrected line: the cells of a record, the text of a malformed one, or a line of JSON. */
export async function reread(line: number, content: string[] | string, owner: string, reading: Reading | null) {
  if (reading === null) return itemOfLine(line, content as string, owner)
  try {
    const cells = typeof content === 'string' ? cellsOfText(content, reading.delimiter) : content.map(cellOf)
    return { line, original: cells, ...bodyOfCells(cells, reading) }
  } catch (error) {
    const refusal = buildUnfitRefusal((error as Error).message)
    return { line, original: bytesOf(cellOf(content as string)), body: null, refusal }
  }
}

/** Line ends within a line of JSON become spaces, which are equivalent. */
async function itemOfLine(line: number, text: string, owner: string): Promise<ImportItem> {
  async function* piece() {
    yield new TextEncoder().encode(text.replace(/[\r\n]+/g, ' '))
  }
  for await (const [item] of ndjsonItems(piece(), owner)) if (item) return { ...item, line }
  return { line, body: null, original: new Uint8Array() }
}

/** Opens a file. Memory holds only the current piece. */
export function openFile(file: File, options: Pick<ReadOptions, 'format' | 'encoding'>): OpenFile {
  const encoding = options.encoding === 'detected' ? undefined : options.encoding
  return openPieces({ name: file.name, format: options.format, encoding }, piecesOf(file.stream()), pieces =>
    piecesOf(streamOf(pieces).pipeThrough(new DecompressionStream('gzip'))),
  )
}

/** The pieces of a stream, because Safari cannot iterate a stream. Leaving the iteration ends the stream. */
async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(value as Uint8Array<ArrayBuffer>)
    },
    async cancel() {
      await pieces.return(undefined)
    },
  })
}
