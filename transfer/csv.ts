import { habitsOf } from './cell-habits.ts'
import { type DecimalMark, isEmptyCell, jsonOf, listOf, type ParseOptions, usualWords, wordsOf } from './cell-parser.ts'
import type { Columns } from './columns.ts'
import { type CsvRecord, CsvRecords } from './csv-records.ts'
import { buildUnfitRefusal, type ImportItem, type Refusal, reasonColumn } from './item.ts'
import { beginning, type Pieces } from './pieces.ts'
import { type Column, firstValue, type ProfilePlan, type ReadAnswers, readAnswers } from './profile-answers.ts'
import type { Target } from './target.ts'

export type CsvSettings = Omit<ParseOptions, 'decimal'> & {
  /** The decimal mark of numbers; null detects it in the first records, and defaults to the point. */
  decimal: DecimalMark | null
  /** The separator of cells; null detects it in the first line. */
  delimiter: string | null
  /** `absent`: an empty cell keeps the stored value; `null`: it clears the value. */
  empty: 'absent' | 'null'
  /** The maximum number of characters of a record, and of bytes per read. */
  maxCharacters?: number
  stepBytes?: number
}

/** The settings with which the records of a file are read. */
export type RecordSettings = ParseOptions & Pick<CsvSettings, 'empty'>

/** The default settings of a file. */
export const usualSettings: RecordSettings & Pick<CsvSettings, 'delimiter'> = {
  listSeparator: '|',
  dateOrder: null,
  decimal: '.',
  words: usualWords,
  offset: null,
  delimiter: null,
  empty: 'absent',
}

/**
 * Makes the settings of a file from the options of a person. Throws if a word has two meanings, or if the comma is both
 * the separator of values and the decimal mark.
 */
export function settingsOf({
  true_words = [],
  false_words = [],
  null_words = [],
  ...settings
}: Partial<Omit<CsvSettings, 'words'>> & { [Name in `${'true' | 'false' | 'null'}_words`]?: string[] }): CsvSettings {
  const words = wordsOf({ true: true_words, false: false_words, null: null_words })
  const all: CsvSettings = { ...usualSettings, decimal: null, ...settings, words }
  if (all.decimal === ',' && all.listSeparator === ',')
    throw new Error('A comma cannot be both the decimal mark and the separator of the values in a cell.')
  return all
}

/**
 * The columns of a file, and those that a profile reads. `replacements` has other cells for some cells of a column, by
 * its index.
 */
export type FileColumns = Columns & { profile?: ProfilePlan; replacements?: Replacements }
export type Replacements = ReadonlyMap<number, ReadonlyMap<string, string>>

/** The header of a file. Its cells are Latin-1: one character per byte. */
export type CsvHead = { cells: string[]; delimiter: string }

const delimiters = [',', ';', '\t', '|']
const detectionBytes = 65_536

/**
 * Parses CSV and converts the non-empty records to bodies. `plan` is called once, with the header, before the first
 * record. Cells are read as Latin-1, one character per byte, so that invalid UTF-8 is detected and a refused record is
 * written back byte for byte.
 */
export async function* csvItems(
  pieces: Pieces,
  settings: CsvSettings,
  plan: (head: CsvHead) => FileColumns,
): AsyncGenerator<ImportItem[]> {
  const [start, all] = await beginning(pieces, detectionBytes)
  const { delimiter, skipped, isRefused } = separatorOf(latin1Of(start.subarray(0, detectionBytes)), settings.delimiter)
  const read = new CsvRecords(delimiter, skipped > 0 ? 2 : 1, settings.maxCharacters)
  let columns: FileColumns | undefined
  let recordSettings: RecordSettings & { delimiter: string }
  const itemsOf = (records: CsvRecord[]) => {
    if (columns === undefined && records.length > 0) {
      const cells = headerOf(records.shift()!)
      // The column of reasons from an earlier import is not imported.
      columns = plan({ cells: isRefused ? cells.slice(1) : cells, delimiter })
      const decimal = settings.decimal ?? decimalOf(start, { delimiter, skipped, isRefused }, columns.targets)
      recordSettings = { ...settings, decimal, delimiter }
    }
    return records.flatMap(record => itemOf(record, columns!, recordSettings, isRefused))
  }
  let skip = skipped
  for await (const piece of all) {
    const { stepBytes = piece.length } = settings
    for (let at = Math.min(skip, piece.length); at < piece.length; at += stepBytes)
      yield itemsOf(read.take(latin1Of(piece.subarray(at, at + stepBytes))))
    skip = Math.max(0, skip - piece.length)
  }
  yield itemsOf(read.last())
  if (columns === undefined) throw new Error('The file is empty. The first line of a CSV file names the columns.')
}

/** Detects the decimal mark in the beginning of a file. */
function decimalOf(start: Uint8Array, { delimiter, skipped, isRefused }: Separator, targets: Target[]): DecimalMark {
  if (!targets.some(target => 'type' in target && target.type === 'number')) return '.'
  const records = new CsvRecords(delimiter).take(latin1Of(start.subarray(skipped, detectionBytes)))
  const cells = records.slice(1).flatMap(record => ('cells' in record ? [record.cells.slice(isRefused ? 1 : 0)] : []))
  return habitsOf(cells, targets).decimal ?? '.'
}

type Separator = { delimiter: string; skipped: number; isRefused: boolean }

/**
 * Finds the separator of cells in the beginning of a file: the one behind the column of reasons in a file of refused
 * records, else the given one, else the one of a first line `sep=;`, else the most frequent one in the header.
 * `skipped` counts the characters before the header.
 */
function separatorOf(text: string, given: string | null): Separator {
  const [line = '', named] = /^"?sep=(.)"?[;,\t ]*(?:\r\n|\r|\n)/i.exec(text) ?? []
  const header = text.slice(line.length)
  const [, , behindReason] = afterReason.exec(header) ?? []
  const delimiter = behindReason ?? given ?? named ?? detectDelimiter(header)
  return { delimiter, skipped: line.length, isRefused: behindReason !== undefined }
}

const afterReason = new RegExp(`^("?)${reasonColumn}\\1([^\\w"\\r\\n])`)

/** Returns the names of the columns. Empty cells at the end of the header are no columns. */
function headerOf(header: CsvRecord): string[] {
  if ('fault' in header) throw new Error(`The header ${header.fault}.`)
  return header.cells.slice(0, header.cells.findLastIndex(cell => cell.trim() !== '') + 1)
}

/**
 * Converts a record to an item. With `isRefused`, it comes from a file of refused records, and its first cell is the
 * reason.
 */
function itemOf(
  record: CsvRecord,
  columns: FileColumns,
  settings: RecordSettings & { delimiter: string },
  isRefused: boolean,
): ImportItem[] {
  const { line } = record
  const again = isRefused && { isRefused }
  if ('fault' in record) {
    const text = isRefused ? withoutFirstCell(record.text, settings.delimiter) : record.text
    return [{ line, original: bytesOf(text), body: null, refusal: buildUnfitRefusal(record.fault), ...again }]
  }
  const cells = isRefused ? record.cells.slice(1) : record.cells
  if (cells.every(cell => cell.trim() === '')) return []
  return [{ line, original: cells, ...bodyOf(cells, columns, settings), ...again }]
}

function withoutFirstCell(text: string, delimiter: string): string {
  const closing = text.startsWith('"') ? /^"(?:[^"]|"")*"/.exec(text)?.[0].length : 0
  const end = closing === undefined ? -1 : text.indexOf(delimiter, closing)
  return end === -1 ? text : text.slice(end + 1)
}

/** Parses the corrected text of one record. Throws if it is still malformed. */
export function cellsOfText(text: string, delimiter: string): string[] {
  const read = new CsvRecords(delimiter)
  const [record, further] = [...read.take(cellOf(text)), ...read.last()]
  if (record === undefined) return []
  if ('fault' in record) throw new Error(record.fault)
  if (further) throw new Error('has several lines that no quotes enclose')
  return record.cells
}

/** Returns the delimiter that occurs most often in the header, outside of quotes. */
function detectDelimiter(text: string): string {
  const header = text.replace(/"(?:[^"]|"")*"/g, '').split(/\r|\n/, 1)[0]!
  const counts = delimiters.map(delimiter => header.split(delimiter).length)
  return delimiters[counts.indexOf(Math.max(...counts))]!
}

type Body = ({ body: string } | { body: null; refusal?: Refusal }) & { answers?: ReadAnswers }

/** A cell; undefined if the record ends before it. */
type Cells = (string | undefined)[]

/**
 * Converts a record, whose cells are Latin-1, to a body. Missing last cells are absent, and empty cells behind the last
 * column are ignored.
 */
export function bodyOf(original: string[], columns: FileColumns, settings: RecordSettings): Body {
  const { targets, stateAt, constants, profile, replacements } = columns
  const expected = targets.length - constants.length
  if (original.slice(expected).some(cell => cell.trim() !== '')) {
    const refusal = buildUnfitRefusal(`has ${original.length} cells, but the header has ${expected}`)
    return { body: null, refusal }
  }
  const cells: Cells = targets.map((_, index) => (index < expected ? original[index] : constants[index - expected]))
  for (const [index, others] of replacements ?? []) cells[index] = others.get(cells[index] ?? '') ?? cells[index]
  if (stateAt !== null && cells[stateAt] === 'placeholder') return { body: null }
  const parts: Parts = { fields: [], attributes: [], consents: [], answers: new Map(), evidence: new Map() }
  const details: Refusal['details'] = []
  for (const [index, target] of targets.entries()) {
    const cell = cells[index]
    if (target.to === 'nothing' || cell === undefined) continue
    try {
      addCell(parts, target, textOf(cell), settings)
    } catch (error) {
      details.push({ path: target.name, message: (error as Error).message })
    }
  }
  // Constants of a consent apply only to records with an answer.
  for (const target of targets.slice(0, expected))
    if (
      target.to === 'evidence' &&
      parts.evidence.get(target.consent)?.has(target.key) &&
      !parts.answers.has(target.consent)
    )
      details.push({ path: target.name, message: `needs an answer in the column ${target.consent}` })
  const answers = profile ? addProfile(parts, profile, cells, settings, details) : undefined
  return {
    ...(details.length > 0 ? { body: null, refusal: buildUnfitRefusal('', details) } : { body: join(parts) }),
    ...(answers && { answers }),
  }
}

/** Adds the answers that a profile reads from a record. It adds a fault to `details`, under the name of its column. */
function addProfile(
  parts: Parts,
  profile: ProfilePlan,
  cells: Cells,
  settings: RecordSettings,
  details: Refusal['details'],
): ReadAnswers {
  const { externalId, fields, phone, splitPhone, rules, reference, timeZone } = profile
  const cell = (index: number) => {
    const text = textOf(cells[index] ?? '')
    return isEmptyCell(text, settings) ? '' : text
  }
  const firstOf = (columns: Column[]) => firstValue(columns, cell)?.text ?? ''
  const attempt = (columns: Column[], work: () => void) => {
    try {
      work()
    } catch (error) {
      details.push({ path: columns.map(({ name }) => name).join(' or '), message: (error as Error).message })
    }
  }
  if (externalId)
    attempt(externalId.columns, () => {
      const text = firstOf(externalId.columns)
      if (text === '') throw new Error('is empty, so that the record has no external_id')
      const id = externalId.isEmail ? text.toLowerCase() : externalId.prefix + text
      parts.fields.push(`"external_id":${JSON.stringify(id)}`)
    })
  for (const { columns, target } of fields)
    if (columns.some(({ indices }) => indices.some(index => cells[index] !== undefined)))
      attempt(columns, () => addCell(parts, target, firstOf(columns), settings))
  attempt(phone, () => {
    const text = firstOf(phone)
    if (text !== '') parts.fields.push(JSON.stringify(splitPhone(text)).slice(1, -1))
  })
  const parse = { ...settings, offset: settings.offset ?? timeZone }
  const { exportedAt, product } = profile
  const answers = readAnswers(rules, cell, firstOf(reference), { product, parse, exportedAt })
  details.push(...answers.details)
  parts.consents.push(...answers.entries.map(entry => JSON.stringify(entry)))
  return answers
}

/**
 * JSON texts: `"key":value` for fields and attributes, array elements for consents. `answers` has the members of such
 * an element, and the evidence has JSON by key. Both are keyed by the name of the answer's column.
 */
type Parts = {
  fields: string[]
  attributes: string[]
  consents: string[]
  answers: Map<string, string>
  evidence: Map<string, Map<string, string>>
}

function addCell(parts: Parts, target: Exclude<Target, { to: 'nothing' }>, cell: string, settings: RecordSettings) {
  const isEmpty = isEmptyCell(cell, settings)
  if (isEmpty && settings.empty === 'absent') return
  switch (target.to) {
    case 'field':
      parts.fields.push(`"${target.key}":${isEmpty ? 'null' : jsonOf(cell, target.type, settings, target.prefix)}`)
      break
    case 'attribute': {
      const value = target.many ? listOf : jsonOf
      const json = isEmpty ? 'null' : value(cell, target.type, settings, target.prefix)
      parts.attributes.push(`${JSON.stringify(target.key)}:${json}`)
      break
    }
    case 'consent': {
      const { consent_type_id, channel } = target
      const state = isEmpty ? null : jsonOf(cell, 'boolean', settings)
      if (state)
        parts.answers.set(target.name, `"consent_type_id":${consent_type_id},"channel":"${channel}","state":${state}`)
      break
    }
    case 'evidence': {
      if (isEmpty) break
      const evidence = parts.evidence.get(target.consent) ?? new Map<string, string>()
      parts.evidence.set(target.consent, evidence.set(target.key, jsonOf(cell, target.type, settings, target.prefix)))
      break
    }
    default:
      if (!isEmpty) parts[target.to].push(inner(cell, target.to === 'attributes' ? '{}' : '[]', settings))
  }
}

/** Returns the content of a JSON object or array without its braces or brackets. */
function inner(cell: string, brackets: '{}' | '[]', settings: RecordSettings): string {
  const text = jsonOf(cell, 'json', settings)
  if (text[0] !== brackets[0]) throw new Error(`is not a JSON ${brackets === '{}' ? 'object' : 'array'}`)
  return text.slice(1, -1).trim()
}

function join({ fields, attributes, consents, answers, evidence }: Parts): string {
  const attributeTexts = attributes.filter(Boolean)
  const consentTexts = consents.filter(Boolean)
  for (const [name, answer] of answers) {
    const members = [...(evidence.get(name) ?? [])].map(([key, value]) => `,"${key}":${value}`)
    consentTexts.push(`{${answer}${members.join('')}}`)
  }
  if (attributeTexts.length > 0) fields.push(`"attribute_values":{${attributeTexts.join()}}`)
  if (consentTexts.length > 0) fields.push(`"consents":[${consentTexts.join()}]`)
  return `{${fields.join()}}`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is the same in Latin-1 and UTF-8
const ascii = /^[\x00-\x7f]*$/

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/**
 * A reused buffer for the bytes of a cell. 200,000 records with two such cells take 1.5 s to read, and 2.8 s with
 * Uint8Array.from (Node 24).
 */
const shortCell = new Uint8Array(1_024)

/** Decodes the bytes of a Latin-1 cell as UTF-8. Throws if they are not valid UTF-8. */
export function textOf(cell: string): string {
  if (ascii.test(cell)) return cell
  const bytes = cell.length <= shortCell.length ? shortCell.subarray(0, cell.length) : undefined
  try {
    return utf8.decode(bytesOf(cell, bytes))
  } catch {
    throw new Error('is not UTF-8')
  }
}

/** Encodes a text like the cells of a record: one character per byte of UTF-8. */
export const cellOf = (text: string): string => (ascii.test(text) ? text : latin1Of(new TextEncoder().encode(text)))

/** The bytes of a Latin-1 text. */
export function bytesOf(text: string, bytes = new Uint8Array(text.length)): Uint8Array<ArrayBuffer> {
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}

/** Decodes bytes to one character each. TextDecoder has no Latin-1: that name stands for windows-1252. */
function latin1Of(bytes: Uint8Array): string {
  if ('Buffer' in globalThis) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
  let text = ''
  for (let start = 0; start < bytes.length; start += 8_192)
    text += String.fromCharCode(...bytes.subarray(start, start + 8_192))
  return text
}
