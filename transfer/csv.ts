import { type CsvError, parse } from 'csv-parse'
import { jsonOf, listOf, type ParseOptions } from './cell-parser.ts'
import type { Columns, Target } from './columns.ts'
import { buildUnfitRefusal, type ImportItem, type Refusal, reasonColumn } from './item.ts'
import { beginning, type Pieces } from './pieces.ts'
import { type Column, firstValue, type ProfilePlan, type ReadAnswers, readAnswers } from './profile-answers.ts'

export type CsvSettings = ParseOptions & {
  /** The separator of cells; null detects it from the header. */
  delimiter: string | null
  /** `absent`: an empty cell keeps the stored value; `null`: it clears the value. */
  empty: 'absent' | 'null'
}

/** The columns of a file, and those that a profile reads. */
export type FileColumns = Columns & { profile?: ProfilePlan }

/** The header of a file. Its cells are Latin-1: one character per byte. */
export type CsvHead = { cells: string[]; delimiter: string }

const maxRecordBytes = 16_777_216
const delimiters = [',', ';', '\t', '|']
const detectionBytes = 65_536
/** The parser's build for browsers takes bytes only as a text. In Node, that conversion would cost time. */
const isNode = 'Buffer' in globalThis

/**
 * Parses CSV (RFC 4180) and converts the records that are not empty to bodies. `plan` is called once, with the header,
 * before the first record. Cells are read as Latin-1, one character per byte, so that invalid UTF-8 is detected and a refused
 * record is written back byte for byte.
 */
export async function* csvItems(
  pieces: Pieces,
  settings: CsvSettings,
  plan: (head: CsvHead) => FileColumns,
): AsyncGenerator<ImportItem[]> {
  const [start, all] = await beginning(pieces, detectionBytes)
  const delimiter = settings.delimiter ?? detectDelimiter(latin1Of(start.subarray(0, detectionBytes)))
  let columns: FileColumns | undefined
  let reasonColumns = 0
  for await (const records of recordsOf(all, delimiter)) {
    if (columns === undefined && records.length > 0) {
      // The reasons that an earlier import wrote are not imported.
      reasonColumns = records[0]!.cells[0] === reasonColumn ? 1 : 0
      columns = plan({ cells: records.shift()!.cells.slice(reasonColumns), delimiter })
    }
    if (reasonColumns > 0) for (const record of records) record.cells.shift()
    const items = records.filter(({ cells }) => cells.some(cell => cell.trim() !== ''))
    yield items.map(({ cells, line }) => ({ line, original: cells, ...bodyOf(cells, columns!, settings) }))
  }
  if (columns === undefined) throw new Error('The file is empty. The first line of a CSV file names the columns.')
}

type Record = { cells: string[]; line: number }

async function* recordsOf(pieces: Pieces, delimiter: string): AsyncGenerator<Record[]> {
  const records: Record[] = []
  let line = 1
  const parser = parse({
    delimiter,
    encoding: 'latin1',
    max_record_size: maxRecordBytes,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    // A quote within a cell that does not begin with one is an ordinary character.
    relax_quotes: true,
    skip_empty_lines: true,
    // Collecting records here costs half of the time of reading them as objects of the stream.
    on_record: (cells: string[], { lines }) => {
      records.push({ cells, line })
      line = lines + 1
      return null
    },
  })
  const step = (work: (done: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) =>
      work(error => (error ? reject(describeCsvError(error as CsvError, line)) : resolve())),
    )
  parser.on('error', () => {}).resume()
  const takeRecords = () => records.splice(0)
  for await (const piece of pieces) {
    await step(done => parser.write(isNode ? piece : latin1Of(piece), 'latin1', done))
    yield takeRecords()
  }
  await step(done => parser.end(done))
  yield takeRecords()
}

function describeCsvError(error: CsvError, line: number): Error {
  if (error.code === 'CSV_QUOTE_NOT_CLOSED' || error.code === 'CSV_MAX_RECORD_SIZE')
    return new Error(`The record that begins in line ${line} does not end. Check for a missing closing quote.`)
  if (!String(error.code).startsWith('CSV_')) return error
  return new Error(`The record that begins in line ${line} is not valid CSV: ${error.message}`)
}

/** Returns the delimiter that occurs most often in the header, outside of quotes. */
function detectDelimiter(text: string): string {
  const header = text.replace(/"(?:[^"]|"")*"/g, '').split(/\r|\n/, 1)[0]!
  const counts = delimiters.map(delimiter => header.split(delimiter).length)
  return delimiters[counts.indexOf(Math.max(...counts))]!
}

type Body = ({ body: string } | { body: null; refusal?: Refusal }) & { answers?: ReadAnswers }

/** Converts a record to a body. Its cells are Latin-1. */
export function bodyOf(original: string[], columns: FileColumns, settings: CsvSettings): Body {
  const { targets, stateAt, constants, profile } = columns
  const cells = constants.length === 0 ? original : [...original, ...constants]
  if (cells.length !== targets.length) {
    const expected = targets.length - constants.length
    const refusal = buildUnfitRefusal(`has ${original.length} cells, but the header has ${expected}`)
    return { body: null, refusal }
  }
  if (stateAt !== null && cells[stateAt] === 'placeholder') return { body: null }
  const parts: Parts = { fields: [], attributes: [], consents: [], answers: new Map(), evidence: new Map() }
  const details: Refusal['details'] = []
  for (const [index, target] of targets.entries()) {
    if (target.to === 'nothing') continue
    try {
      addCell(parts, target, textOf(cells[index]!), settings)
    } catch (error) {
      details.push({ path: target.name, message: (error as Error).message })
    }
  }
  // A constant applies to the records that have an answer.
  for (const target of targets.slice(0, original.length))
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

/** Adds what a profile reads from a record. A fault is added to `details`, under the name of its column. */
function addProfile(
  parts: Parts,
  profile: ProfilePlan,
  cells: string[],
  settings: CsvSettings,
  details: Refusal['details'],
): ReadAnswers {
  const { externalId, fields, phone, splitPhone, rules, reference, timeZone } = profile
  const cell = (index: number) => textOf(cells[index]!)
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
  for (const { columns, target } of fields) attempt(columns, () => addCell(parts, target, firstOf(columns), settings))
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
 * JSON texts: `"key":value` for fields and attributes, array elements for consents. The answers are the members of such an
 * element, and their evidence is JSON by key, both by the name of the answer's column.
 */
type Parts = {
  fields: string[]
  attributes: string[]
  consents: string[]
  answers: Map<string, string>
  evidence: Map<string, Map<string, string>>
}

function addCell(parts: Parts, target: Exclude<Target, { to: 'nothing' }>, cell: string, settings: CsvSettings) {
  const isEmpty = cell.trim() === ''
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
function inner(cell: string, brackets: '{}' | '[]', settings: CsvSettings): string {
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
/** The bytes of a cell in work. 200,000 records with two such cells take 1.5 s to read, and with Uint8Array.from 2.8 s (Node 24). */
const shortCell = new Uint8Array(1_024)

/** Decodes a cell that was read as Latin-1 as UTF-8. Throws if it is not valid UTF-8. */
export function textOf(cell: string): string {
  if (ascii.test(cell)) return cell
  const bytes = cell.length <= shortCell.length ? shortCell.subarray(0, cell.length) : undefined
  try {
    return utf8.decode(bytesOf(cell, bytes))
  } catch {
    throw new Error('is not UTF-8')
  }
}

/** The cell of a text, as the cells of a record are: one character per byte of UTF-8. */
export const cellOf = (text: string): string => (ascii.test(text) ? text : latin1Of(new TextEncoder().encode(text)))

/** The bytes of a Latin-1 text. */
export function bytesOf(text: string, bytes = new Uint8Array(text.length)): Uint8Array<ArrayBuffer> {
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}

// TextDecoder has no Latin-1: that name stands for windows-1252.
function latin1Of(bytes: Uint8Array): string {
  let text = ''
  for (let start = 0; start < bytes.length; start += 8_192)
    text += String.fromCharCode(...bytes.subarray(start, start + 8_192))
  return text
}
