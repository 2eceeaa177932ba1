import type { Definitions, ImportMapping } from '@kith/client'
import { habitsOf } from '../../../transfer/cell-habits.ts'
import type { DateOrder, DecimalMark, OffsetOf } from '../../../transfer/cell-parser.ts'
import { findTarget, nothing, readOnlyColumnsOf, targetsOf } from '../../../transfer/columns.ts'
import {
  bodyOf,
  bytesOf,
  type CsvSettings,
  cellOf,
  cellsOfText,
  csvItems,
  type FileColumns,
  type RecordSettings,
  settingsOf as settingsOfFile,
  textOf,
} from '../../../transfer/csv.ts'
import type { Format } from '../../../transfer/file.ts'
import { recognizeColumns } from '../../../transfer/header-names.ts'
import { buildUnfitRefusal, type ImportItem } from '../../../transfer/item.ts'
import { ndjsonItems } from '../../../transfer/ndjson.ts'
import type { Pieces } from '../../../transfer/pieces.ts'
import type { Target } from '../../../transfer/target.ts'
import { momentOf } from '../entity/fields.ts'
import { attributePrefix } from '../filters/field-types.ts'
import { type Encoding, openFile } from './file-source.ts'

/** How a file is read. A person sets it before an import. */
export type ReadOptions = {
  format: Format
  encoding: Encoding
  delimiter: string | null
  /** Null finds it from the cells, as with the decimal mark. */
  dateOrder: DateOrder | null
  /** `local` is the time zone of the browser. */
  offset: 'Z' | 'local' | null
  empty: 'absent' | 'null'
  decimal: DecimalMark | null
  /** Words that mean yes, no and nothing, separated by commas. */
  trueWords: string
  falseWords: string
  nullWords: string
}

export const defaultReadOptions: Omit<ReadOptions, 'format'> = {
  encoding: 'detected',
  delimiter: null,
  dateOrder: null,
  offset: 'local',
  empty: 'absent',
  decimal: null,
  trueWords: '',
  falseWords: '',
  nullWords: '',
}

/** The field of each column: a name of `targetsOf`, '' if the column is ignored, null while nobody has chosen. */
export type Mapping = (string | null)[]

/**
 * The beginning of a CSV file: the names of its columns, and its first records with their lines. `sample` are the cells of more of them, which
 * tell how the file is written.
 */
export type CsvStart = {
  names: string[]
  delimiter: string
  encoding: string | undefined
  records: CsvStartRecord[]
  sample: string[][]
}

/** `fault` says why a record is malformed. Its one cell is then its text. */
type CsvStartRecord = { line: number; cells: string[]; fault?: string | undefined }

const previewRows = 20
const sampleRows = 1_000

/** Throws if a word has two meanings. */
const settingsOf = ({ delimiter, dateOrder, offset, empty, decimal, ...words }: ReadOptions): CsvSettings =>
  settingsOfFile({
    ...{ delimiter, dateOrder, empty, decimal },
    offset: offset === 'local' ? localOffsetOf : offset,
    true_words: words.trueWords.split(','),
    false_words: words.falseWords.split(','),
    null_words: words.nullWords.split(','),
  })

/** The options with what the cells tell of the file, so that preview, check and import read it in the same way. */
export type FoundOptions = ReadOptions & { decimal: DecimalMark }

/** Finds what the options leave open. `isOrderOpen`: the file has dates whose order only a person knows. */
export function findOptions(
  options: ReadOptions,
  { sample }: CsvStart,
  { targets }: FileColumns,
): { options: FoundOptions; isOrderOpen: boolean } {
  const found = habitsOf(sample, targets)
  const dateOrder = options.dateOrder ?? (found.dateOrder === 'mixed' ? null : found.dateOrder)
  const isOrderOpen = dateOrder === null && found.dateOrder === 'mixed'
  return { options: { ...options, decimal: options.decimal ?? found.decimal ?? '.', dateOrder }, isOrderOpen }
}

const recordSettingsOf = (options: FoundOptions): RecordSettings => ({
  ...settingsOf(options),
  decimal: options.decimal,
})

/** The fault of the options. Null if there is none. */
export function settingsFault(options: ReadOptions): string | null {
  try {
    settingsOf(options)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** The offset of the browser's time zone at a local time, such as +01:00. Null for a time that clocks are put forward over. */
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

/** The first lines of a file of JSON lines, as the file has them. */
export async function readNdjsonStart(file: File, options: ReadOptions, owner: string): Promise<ImportItem[]> {
  const lines: ImportItem[] = []
  for await (const items of ndjsonItems(openFile(file, options).pieces, owner)) {
    lines.push(...items)
    if (lines.length >= previewRows) break
  }
  return lines.slice(0, previewRows)
}

/** A cell for people to read. A cell that is not UTF-8 is shown as Latin-1. */
export function shownCell(cell: string): string {
  try {
    return textOf(cell)
  } catch {
    return cell
  }
}

/** The mapping that the names of the columns suggest. */
export function suggestMapping(names: string[], owner: string, definitions: Definitions): Mapping {
  const targets = targetsOf(owner, definitions)
  const readOnly = readOnlyColumnsOf(names)
  const given = names.map(name => (readOnly.includes(name) ? null : nameOfTarget(findTarget(name, targets))))
  // Two columns cannot become one field.
  const own = given.map((field, index) => (field !== null && given.indexOf(field) === index ? field : null))
  const open = names.map((name, index) => (given[index] || readOnly.includes(name) ? '' : name))
  const recognized = recognizeColumns(
    open,
    targets,
    own.flatMap(field => field ?? []),
  )
  return names.map((name, index) =>
    readOnly.includes(name) ? '' : (own[index] ?? nameOfTarget(recognized[index] ?? null)),
  )
}

const nameOfTarget = (target: Target | null): string | null => (target && target.to !== 'nothing' ? target.name : null)

/** The field of the attribute that a column would become. An export names such a column in full. */
export const attributeFieldOf = (column: string): string =>
  column.startsWith(attributePrefix) ? column : attributePrefix + column

function targetName(field: string, owner: string, definitions: Definitions): string {
  const target = findTarget(field, targetsOf(owner, definitions))
  return target && target.to !== 'nothing' ? target.name : field
}

/** The columns of a mapping in which everybody has chosen. `constants` are cells that every record has, by their fields. */
export function columnsOfMapping(
  names: string[],
  mapping: Mapping,
  owner: string,
  definitions: Definitions,
  constants: ReadonlyMap<string, string> = new Map(),
): FileColumns {
  const fields = targetsOf(owner, definitions)
  const targets = mapping.map(field => (field ? (findTarget(field, fields) ?? nothing) : nothing))
  const stateAt = readOnlyColumnsOf(names).includes('state') ? names.indexOf('state') : null
  return {
    targets: [...targets, ...[...constants.keys()].map(field => findTarget(field, fields) ?? nothing)],
    stateAt,
    notices: [],
    constants: [...constants.values()].map(cellOf),
  }
}

/** The mapping of an earlier file with the same header. A field that is gone is left to choose. */
export function earlierMapping(
  { names }: CsvStart,
  earlier: readonly ImportMapping[],
  owner: string,
): ImportMapping | undefined {
  const header = JSON.stringify(names)
  return earlier.find(mapping => mapping.owner === owner && JSON.stringify(mapping.header) === header)
}

/** The mapping of a person, if it fits the file, else the earlier or the suggested one. Reading the file in another way gives it other columns. */
export function mappingOf(
  { names }: CsvStart,
  mapping: Mapping,
  earlier: ImportMapping | undefined,
  owner: string,
  definitions: Definitions,
): Mapping {
  if (mapping.length === names.length) return mapping
  if (!earlier) return suggestMapping(names, owner, definitions)
  const targets = targetsOf(owner, definitions)
  return earlier.fields.map(field => (field === null ? '' : nameOfTarget(findTarget(field, targets))))
}

/** The fields that two columns are mapped to. */
export function repeatedFields(mapping: Mapping, owner: string, definitions: Definitions): Set<string> {
  const names = mapping.filter(field => field).map(field => targetName(field!, owner, definitions))
  return new Set(names.filter((name, index) => names.indexOf(name) !== index))
}

export const fieldName = targetName

/** What an import would send for a record, by the index of the column, and what is wrong with it. */
export type PreviewRow = {
  line: number
  cells: { text: string; value: unknown; error: string | undefined }[]
  error: string | undefined
}

export function previewOf(start: CsvStart, columns: FileColumns, options: FoundOptions): PreviewRow[] {
  return start.records.map(({ line, cells, fault }) => {
    if (fault !== undefined)
      return { line, error: fault, cells: cells.map(text => ({ text, value: undefined, error: undefined })) }
    const read = bodyOf(cells.map(cellOf), columns, recordSettingsOf(options))
    const details = 'refusal' in read ? (read.refusal?.details ?? []) : []
    const body = read.body === null ? undefined : (JSON.parse(read.body) as Body)
    return {
      line,
      error: 'refusal' in read && details.length === 0 ? read.refusal?.message : undefined,
      cells: start.names.map((_, index) => {
        const target = columns.targets[index]!
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

/** Reads all items of a file. `columns` is null for JSON lines. */
export function itemsOf(
  pieces: Pieces,
  owner: string,
  options: ReadOptions,
  columns: FileColumns | null,
): AsyncGenerator<ImportItem[]> {
  return columns === null ? ndjsonItems(pieces, owner) : csvItems(pieces, settingsOf(options), () => columns)
}

/** Reads the cells of a record again that a person has mended. */
export function itemOfCells(line: number, cells: string[], columns: FileColumns, options: FoundOptions): ImportItem {
  const original = cells.map(cellOf)
  return { line, original, ...bodyOf(original, columns, recordSettingsOf(options)) }
}

/** Reads the text of a malformed record again that a person has mended. */
export function itemOfText(
  line: number,
  text: string,
  columns: FileColumns,
  options: FoundOptions & { delimiter: string },
): ImportItem {
  try {
    return itemOfCells(line, cellsOfText(text, options.delimiter).map(shownCell), columns, options)
  } catch (error) {
    const refusal = buildUnfitRefusal((error as Error).message)
    return { line, original: bytesOf(cellOf(text)), body: null, refusal }
  }
}

/** Reads a line again that a person has mended. Line ends within it become spaces, which mean the same in JSON. */
export async function itemOfLine(line: number, text: string, owner: string): Promise<ImportItem> {
  async function* piece() {
    yield new TextEncoder().encode(text.replace(/[\r\n]+/g, ' '))
  }
  for await (const [item] of ndjsonItems(piece(), owner)) if (item) return { ...item, line }
  return { line, body: null, original: new Uint8Array() }
}
