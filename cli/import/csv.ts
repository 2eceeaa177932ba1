import { isUtf8 } from 'node:buffer'
import { type CsvError, parse } from 'csv-parse'
import { jsonOf, listOf, type ParseOptions } from './cell-parser.ts'
import type { Columns, Target } from './columns.ts'
import { beginning } from './input.ts'
import { type Item, type Refusal, reasonColumn, unfitRefusal } from './item.ts'

export type CsvSettings = ParseOptions & {
  /** What separates cells; null where the header shall tell. */
  delimiter: string | null
  /** What an empty cell is: nothing, or null, which clears. */
  empty: 'absent' | 'null'
}

/** The header, as soon as it is read; cells have a byte a character. */
export type CsvHead = { cells: string[]; delimiter: string }

const longestRecordBytes = 16_777_216
const delimiters = [',', ';', '\t', '|']
const guessingBytes = 65_536

/**
 * The records of RFC 4180 that are not empty, as bodies. `plan` is called once, with the header, before the first. Cells
 * are read as Latin-1, a character a byte, so that what is no UTF-8 is noticed and can be written as it was.
 */
export async function* csvItems(
  pieces: AsyncIterable<Buffer>,
  settings: CsvSettings,
  plan: (head: CsvHead) => Columns,
): AsyncGenerator<Item[]> {
  const [start, all] = await beginning(pieces, guessingBytes)
  const delimiter = settings.delimiter ?? guess(start.toString('latin1'))
  let columns: Columns | undefined
  let reasons = 0
  for await (const records of recordsOf(all, delimiter)) {
    if (columns === undefined && records.length > 0) {
      // The reasons that an import before this one wrote are nobody's data.
      reasons = records[0]!.cells[0] === reasonColumn ? 1 : 0
      columns = plan({ cells: records.shift()!.cells.slice(reasons), delimiter })
    }
    if (reasons > 0) for (const record of records) record.cells.shift()
    const items = records.filter(({ cells }) => cells.some(cell => cell.trim() !== ''))
    yield items.map(({ cells, line }) => ({ line, original: cells, ...bodyOf(cells, columns!, settings) }))
  }
  if (columns === undefined) throw new Error('The file is empty: the first line of CSV names the columns.')
}

type Record = { cells: string[]; line: number }

async function* recordsOf(pieces: AsyncIterable<Buffer>, delimiter: string): AsyncGenerator<Record[]> {
  const records: Record[] = []
  let line = 1
  const parser = parse({
    delimiter,
    encoding: 'latin1',
    max_record_size: longestRecordBytes,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    // A quote within a cell that does not begin with one is a character of it.
    relax_quotes: true,
    skip_empty_lines: true,
    // Taken here, a record costs half of what it costs as an object of the stream.
    on_record: (cells: string[], { lines }) => {
      records.push({ cells, line })
      line = lines + 1
      return null
    },
  })
  const step = (work: (done: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) =>
      work(error => (error ? reject(sentenceOf(error as CsvError, line)) : resolve())),
    )
  parser.on('error', () => {}).resume()
  const take = () => records.splice(0)
  for await (const piece of pieces) {
    await step(done => parser.write(piece, done))
    yield take()
  }
  await step(done => parser.end(done))
  yield take()
}

function sentenceOf(error: CsvError, line: number): Error {
  if (error.code === 'CSV_QUOTE_NOT_CLOSED' || error.code === 'CSV_MAX_RECORD_SIZE')
    return new Error(`The record that begins in line ${line} does not end: is there a quote too many?`)
  if (!String(error.code).startsWith('CSV_')) return error
  return new Error(`The record that begins in line ${line} is no CSV: ${error.message}`)
}

/** The one that the header has most often outside of quotes. */
function guess(text: string): string {
  const header = text.replace(/"(?:[^"]|"")*"/g, '').split(/\r|\n/, 1)[0]!
  const counts = delimiters.map(delimiter => header.split(delimiter).length)
  return delimiters[counts.indexOf(Math.max(...counts))]!
}

type Sent = { body: string } | { body: null; refusal?: Refusal }

function bodyOf(original: string[], { targets, stateAt, constants }: Columns, settings: CsvSettings): Sent {
  const cells = constants.length === 0 ? original : [...original, ...constants]
  if (cells.length !== targets.length) {
    const expected = targets.length - constants.length
    const refusal = unfitRefusal(`has ${original.length} cells, and the header has ${expected}`)
    return { body: null, refusal }
  }
  if (stateAt !== null && cells[stateAt] === 'placeholder') return { body: null }
  const parts: Parts = { fields: [], attributes: [], consents: [] }
  const details: Refusal['details'] = []
  for (const [index, target] of targets.entries()) {
    if (target.to === 'nothing') continue
    try {
      put(parts, target, textOf(cells[index]!), settings)
    } catch (error) {
      details.push({ path: target.name, message: (error as Error).message })
    }
  }
  return details.length > 0 ? { body: null, refusal: unfitRefusal('', details) } : { body: join(parts) }
}

/** JSON texts: `"key":value`, and elements. */
type Parts = { fields: string[]; attributes: string[]; consents: string[] }

function put(parts: Parts, target: Exclude<Target, { to: 'nothing' }>, cell: string, settings: CsvSettings) {
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
      if (state) parts.consents.push(`{"consent_type_id":${consent_type_id},"channel":"${channel}","state":${state}}`)
      break
    }
    default:
      if (!isEmpty) parts[target.to].push(inner(cell, target.to === 'attributes' ? '{}' : '[]', settings))
  }
}

/** What stands within the braces of a JSON object, or the brackets of an array. */
function inner(cell: string, around: '{}' | '[]', settings: CsvSettings): string {
  const text = jsonOf(cell, 'json', settings)
  if (text[0] !== around[0]) throw new Error(`is no JSON ${around === '{}' ? 'object' : 'array'}`)
  return text.slice(1, -1).trim()
}

function join({ fields, attributes, consents }: Parts): string {
  const attributeTexts = attributes.filter(Boolean)
  const consentTexts = consents.filter(Boolean)
  if (attributeTexts.length > 0) fields.push(`"attribute_values":{${attributeTexts.join()}}`)
  if (consentTexts.length > 0) fields.push(`"consents":[${consentTexts.join()}]`)
  return `{${fields.join()}}`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what is ASCII is the same in both
const ascii = /^[\x00-\x7f]*$/

/** Latin-1 as it was read, as the UTF-8 that it is. */
export function textOf(cell: string): string {
  if (ascii.test(cell)) return cell
  const bytes = Buffer.from(cell, 'latin1')
  if (!isUtf8(bytes)) throw new Error('is not UTF-8')
  return bytes.toString()
}
