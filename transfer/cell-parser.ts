import type { Attribute } from '../client/index.ts'
import { isDate, isDateTime } from '../src/values/formats.ts'
import { readsBackEqual } from '../src/values/scalars.ts'
import { parsedJson } from './parsed-json.ts'

/**
 * Returns the offset of a time zone at a local time `YYYY-MM-DDTHH:MM:SS`, such as `+01:00`. Returns null for a time
 * that clocks skip, and the first of two offsets for a time that clocks show twice.
 */
export type OffsetOf = (localTime: string) => string | null

/** The type that a cell is converted to, of an attribute or a profile field. */
export type CellType = Attribute['type']

/** The order of day and month in a date. */
export type DateOrder = 'dmy' | 'mdy'
export type DecimalMark = '.' | ','

/** Options that decide the meaning of ambiguous cells. */
export type ParseOptions = {
  /** The separator of the values in one cell, for an attribute with many values. */
  listSeparator: string
  /** `dmy` reads 01/02/1999 as 1 February, `mdy` as 2 January; null refuses such a date. */
  dateOrder: DateOrder | null
  /** The decimal mark of numbers. */
  decimal: DecimalMark
  /** Words for an empty cell, and additional words for yes and no. Letter case does not matter. */
  words: CellWords
  /**
   * The offset of times without one, such as Z or +01:00, or a function of the local time; null refuses such a time.
   */
  offset: string | OffsetOf | null
}

/** The words are English, German, Italian, French and Spanish, with those of spreadsheets. A cross means yes. */
const yes = 'true yes y t 1 on x ✓ ✔ ja j wahr an ein sì si vero oui vrai sí verdadero'.split(' ')
const no = 'false no n f 0 off nein falsch aus falso non faux'.split(' ')
const numberForms = {
  '.': /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/,
  ',': /^[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?$/,
}
/** Groups of thousands. One comma alone could also be a decimal mark, so it separates no thousands. */
const groupedForms = {
  '.': /^[+-]?\d{1,3}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,}|(?:[ '’\u00a0\u202f]\d{3})+(?:\.\d*)?)$/,
  ',': /^[+-]?\d{1,3}(?:(?:\.\d{3})+|(?:[ '’\u00a0\u202f]\d{3})+)(?:,\d*)?$/,
}
const groupMarks = { '.': /[, '’\u00a0\u202f]/g, ',': /[. '’\u00a0\u202f]/g }

/** The meaning of words in a file, in lower case. */
export type CellWords = ReadonlyMap<string, 'true' | 'false' | 'null'>

const foldWord = (word: string) => word.trim().toLowerCase()

/** The words of a file. Given words take precedence over the usual ones. Throws if a word has two meanings. */
export function wordsOf(given: Record<'true' | 'false' | 'null', readonly string[]>): CellWords {
  const words = new Map<string, 'true' | 'false' | 'null'>()
  for (const meaning of ['true', 'false', 'null'] as const)
    for (const word of given[meaning].map(foldWord)) {
      const other = words.get(word) ?? meaning
      if (other !== meaning)
        throw new Error(`The word ${JSON.stringify(word)} cannot mean both ${other} and ${meaning}.`)
      if (word !== '') words.set(word, meaning)
    }
  for (const word of yes) if (!words.has(word)) words.set(word, 'true')
  for (const word of no) if (!words.has(word)) words.set(word, 'false')
  return words
}

export const usualWords: CellWords = wordsOf({ true: [], false: [], null: [] })

/** Whether a cell has no value: it is blank, or has a word for it. */
export const isEmptyCell = (cell: string, { words }: ParseOptions): boolean =>
  cell.trim() === '' || words.get(foldWord(cell)) === 'null'

/** Converts a non-empty cell to JSON. Only texts and identifiers have a prefix. Throws the reason of a refusal. */
export function jsonOf(cell: string, type: CellType, options: ParseOptions, prefix?: string): string {
  const text = cell.trim()
  switch (type) {
    case 'number':
      return numberOf(text, options)
    case 'boolean':
      return booleanOf(text, options)
    case 'date':
      return JSON.stringify(dateOf(text, options))
    case 'datetime':
      return JSON.stringify(dateTimeOf(text, options))
    case 'json':
      return jsonText(text)
    default:
      return JSON.stringify(prefix === undefined ? cell : prefix + text)
  }
}

/** Converts a cell with many values to a JSON array. The cell has separators, or is a JSON array as in an export. */
export function listOf(cell: string, type: CellType, options: ParseOptions, prefix?: string): string {
  const text = cell.trim()
  const array = text.startsWith('[') ? parsedJson(text) : undefined
  if (Array.isArray(array)) return prefix === undefined ? oneLine(text) : prefixAll(array, prefix)
  if (type === 'json') throw new Error('is not a JSON array')
  const values = text.split(options.listSeparator).filter(value => value.trim() !== '')
  return `[${values.map(value => jsonOf(value.trim(), type, options, prefix)).join()}]`
}

function prefixAll(values: unknown[], prefix: string): string {
  const isName = (value: unknown) => typeof value === 'string' || Number.isSafeInteger(value)
  if (!values.every(isName))
    throw new Error('has an element that cannot have a prefix. Only texts and whole numbers can')
  return JSON.stringify(values.map(value => prefix + String(value).trim()))
}

function numberOf(text: string, { decimal }: ParseOptions): string {
  const plain = groupedForms[decimal].test(text) ? text.replace(groupMarks[decimal], '') : text
  if (!numberForms[decimal].test(plain)) throw new Error(`${JSON.stringify(text)}${noNumber[decimal]}`)
  const number = plain.replace(',', '.')
  if (!readsBackEqual(number.replace(/^\+/, ''))) throw new Error(`${text} has more digits than a number can store`)
  return JSON.stringify(Number(number))
}

const noNumber = {
  '.': ' is not a number such as 12 or 0.5. For a decimal comma use --decimal ,',
  ',': ' is not a number such as 12 or 0,5',
}

function booleanOf(text: string, { words }: ParseOptions): string {
  const meaning = words.get(foldWord(text))
  if (meaning === 'true' || meaning === 'false') return meaning
  throw new Error(
    `${JSON.stringify(text)} is not a boolean. Write yes or no, in English, German, Italian, French or Spanish, x, 1 or 0, or name the words with --true-words and --false-words`,
  )
}

/** Converts a date to `YYYY-MM-DD`. A time of midnight after it is dropped. */
function dateOf(text: string, { dateOrder }: ParseOptions): string {
  const day = text.replace(/[ T]00:00(?::00(?:\.0+)?)?Z?$/, '')
  const date = isoOf(day, dateOrder)
  if (date !== null && isDate(date)) return date
  throw new Error(`${JSON.stringify(text)} is not a date such as 1999-12-31 or 31.12.1999`)
}

function isoOf(text: string, dateOrder: ParseOptions['dateOrder']): string | null {
  const [, year, month, day] =
    /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/.exec(text)?.filter((_, index) => index !== 2) ??
    /^(\d{4})(\d\d)(\d\d)$/.exec(text) ??
    []
  if (year) return iso(year, month!, day!)
  const dotted = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text)
  if (dotted) return iso(dotted[3]!, dotted[2]!, dotted[1]!)
  const [, first, second, last] = unorderedDate.exec(text) ?? []
  if (!first) return null
  const order = dateOrder ?? orderOf(Number(first), Number(second))
  if (order === null) throw new Error(`${JSON.stringify(text)} is ambiguous. Use --date-order dmy or mdy`)
  return order === 'dmy' ? iso(last!, second!, first) : iso(last!, first, second!)
}

const unorderedDate = /^(\d{1,2})[/-](\d{1,2})[/-](\d{4})$/

/** The order of a cell's date; null if the date needs no order, and `mixed` if the cell does not show it. */
export function dateOrderOf(cell: string): DateOrder | 'mixed' | null {
  const [, first, second] = unorderedDate.exec(cell.split(/[ T]/, 1)[0]!) ?? []
  if (!first || first.padStart(2, '0') === second!.padStart(2, '0')) return null
  return orderOf(Number(first), Number(second)) ?? 'mixed'
}

/** The order of day and month if the numbers decide it: a number above 12 is a day, and equal numbers need no order. */
function orderOf(first: number, second: number): DateOrder | null {
  if (first > 12 || first === second) return 'dmy'
  return second > 12 ? 'mdy' : null
}

const iso = (year: string, month: string, day: string) => `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`

/** Converts a date and a time to RFC 3339. */
function dateTimeOf(text: string, { dateOrder, offset }: ParseOptions): string {
  if (isDateTime(text)) return text
  const [, day = '', time = '00:00', half = '', zone = ''] =
    /^(\S+?)(?:[ T]+(\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)(?: ?([AP]M))?)? ?(Z|UTC|[+-]\d\d:?(?:\d\d)?)?$/i.exec(text) ?? []
  const date = isoOf(day, dateOrder)
  if (date === null) throw new Error(`${JSON.stringify(text)} is not a date and time such as 1999-12-31T23:59:59Z`)
  const local = `${date}T${clockOf(time, half)}`
  if (!isDateTime(`${local}Z`)) throw new Error(`${JSON.stringify(text)} is not an existing date and time`)
  const actualOffset = zone !== '' ? offsetOf(zone) : typeof offset === 'function' ? offset(local) : offset
  if (actualOffset === null && offset !== null)
    throw new Error(`${JSON.stringify(text)} does not exist in the time zone: clocks are put forward over it`)
  if (actualOffset === null)
    throw new Error(
      `${JSON.stringify(text)} has no offset. Use --offset, such as --offset Z, or --time-zone, such as --time-zone Europe/Berlin`,
    )
  const dateTime = local + actualOffset
  if (!isDateTime(dateTime)) throw new Error(`${JSON.stringify(text)} is not an existing date and time`)
  return dateTime
}

/** `9:05` → `09:05:00`, and `9:05` with `PM` → `21:05:00`. */
function clockOf(time: string, half: string): string {
  const [hours = '', minutes = '', seconds = '00'] = time.split(':')
  // An hour that does not fit AM or PM, such as 13 PM, is no time.
  if (half !== '' && (Number(hours) < 1 || Number(hours) > 12)) return time
  const hour = half === '' ? Number(hours) : (Number(hours) % 12) + (half.toUpperCase() === 'PM' ? 12 : 0)
  return `${String(hour).padStart(2, '0')}:${minutes}:${seconds}`
}

function offsetOf(zone: string): string {
  if (/^(?:z|utc)$/i.test(zone)) return 'Z'
  return `${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`
}

function jsonText(text: string): string {
  if (parsedJson(text) === undefined) throw new Error('is not JSON. A JSON text needs double quotes')
  return oneLine(text)
}

// In valid JSON, a line end can only occur between values.
const oneLine = (text: string) => text.replace(/[\r\n]+/g, ' ')
