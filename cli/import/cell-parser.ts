import { isDate, isDateTime } from '../../src/formats.ts'
import { readsBackEqual } from '../../src/scalars.ts'

/** What a cell is to become: the types of attributes, and those of profile fields. */
export type CellType = 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'json' | 'person' | 'stack'

/** How people have written what may be read in several ways. */
export type ParseOptions = {
  /** What separates the values of one cell where an attribute holds many. */
  listSeparator: string
  /** Whether 01/02/1999 is the first of February or the second of January; null where nobody said. */
  dateOrder: 'dmy' | 'mdy' | null
  /** The offset of times that name none, such as Z or +01:00; null where nobody said. */
  offset: string | null
}

const yes = new Set(['true', 'yes', 'y', 't', '1', 'on'])
const no = new Set(['false', 'no', 'n', 'f', '0', 'off'])
const numberForm = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/** A cell that is not empty, as JSON; only texts and identifiers have a prefix. Throws the reason why it cannot be one. */
export function jsonOf(cell: string, type: CellType, habits: ParseOptions, prefix?: string): string {
  const text = cell.trim()
  switch (type) {
    case 'number':
      return numberOf(text)
    case 'boolean':
      return booleanOf(text)
    case 'date':
      return JSON.stringify(dateOf(text, habits))
    case 'datetime':
      return JSON.stringify(dateTimeOf(text, habits))
    case 'json':
      return jsonText(text)
    default:
      return JSON.stringify(prefix === undefined ? cell : prefix + text)
  }
}

/** The values of a cell as a JSON array: separated, or already written as one, as an export writes them. */
export function listOf(cell: string, type: CellType, habits: ParseOptions, prefix?: string): string {
  const text = cell.trim()
  const written = text.startsWith('[') ? parsed(text) : undefined
  if (Array.isArray(written)) return prefix === undefined ? oneLine(text) : prefixAll(written, prefix)
  if (type === 'json') throw new Error('is no JSON array')
  const values = text.split(habits.listSeparator).filter(value => value.trim() !== '')
  return `[${values.map(value => jsonOf(value.trim(), type, habits, prefix)).join()}]`
}

function prefixAll(values: unknown[], prefix: string): string {
  const isName = (value: unknown) => typeof value === 'string' || Number.isSafeInteger(value)
  if (!values.every(isName)) throw new Error('has an element that takes no prefix: only texts and whole numbers do')
  return JSON.stringify(values.map(value => prefix + String(value).trim()))
}

function numberOf(text: string): string {
  if (!numberForm.test(text)) throw new Error(`${JSON.stringify(text)} is no number, such as 12 or 0.5`)
  if (!readsBackEqual(text.replace(/^\+/, ''))) throw new Error(`${text} has more digits than a number keeps`)
  return JSON.stringify(Number(text))
}

function booleanOf(text: string): string {
  const word = text.toLowerCase()
  if (yes.has(word)) return 'true'
  if (no.has(word)) return 'false'
  throw new Error(`${JSON.stringify(text)} is neither yes nor no, true nor false, 1 nor 0`)
}

/** `YYYY-MM-DD` of a date as people write it, perhaps with a midnight. */
function dateOf(text: string, { dateOrder }: ParseOptions): string {
  const day = text.replace(/[ T]00:00(?::00(?:\.0+)?)?Z?$/, '')
  const date = isoOf(day, dateOrder)
  if (date !== null && isDate(date)) return date
  throw new Error(`${JSON.stringify(text)} is no date, such as 1999-12-31 or 31.12.1999`)
}

function isoOf(text: string, dateOrder: ParseOptions['dateOrder']): string | null {
  const [, year, month, day] =
    /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/.exec(text)?.filter((_, index) => index !== 2) ??
    /^(\d{4})(\d\d)(\d\d)$/.exec(text) ??
    []
  if (year) return iso(year, month!, day!)
  const dotted = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text)
  if (dotted) return iso(dotted[3]!, dotted[2]!, dotted[1]!)
  const [, first, second, last] = /^(\d{1,2})[/-](\d{1,2})[/-](\d{4})$/.exec(text) ?? []
  if (!first) return null
  const order = dateOrder ?? orderOf(Number(first), Number(second))
  if (order === null) throw new Error(`${JSON.stringify(text)} may be two dates: say --date-order dmy or mdy`)
  return order === 'dmy' ? iso(last!, second!, first) : iso(last!, first, second!)
}

/** A number beyond 12 is no month; the same number twice is one date in either order. */
function orderOf(first: number, second: number): ParseOptions['dateOrder'] {
  if (first > 12 || first === second) return 'dmy'
  return second > 12 ? 'mdy' : null
}

const iso = (year: string, month: string, day: string) => `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`

/** RFC 3339 of a date and a time as people write them. */
function dateTimeOf(text: string, { dateOrder, offset }: ParseOptions): string {
  if (isDateTime(text)) return text
  const [, day = '', time = '', zone = ''] =
    /^(\S+?)(?:[ T]+(\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?))? ?(Z|UTC|[+-]\d\d:?(?:\d\d)?)?$/i.exec(text) ?? []
  const date = isoOf(day, dateOrder)
  if (date === null) throw new Error(`${JSON.stringify(text)} is no date and time, such as 1999-12-31T23:59:59Z`)
  const said = zone === '' ? offset : offsetOf(zone)
  if (said === null) throw new Error(`${JSON.stringify(text)} does not say of which zone: give --offset, such as Z`)
  const clock = `${time || '00:00'}${/^\d+:\d\d$/.test(time || '00:00') ? ':00' : ''}`.padStart(8, '0')
  const moment = `${date}T${clock}${said}`
  if (!isDateTime(moment)) throw new Error(`${JSON.stringify(text)} is no date and time that there is`)
  return moment
}

function offsetOf(zone: string): string {
  if (/^(?:z|utc)$/i.test(zone)) return 'Z'
  return `${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`
}

function jsonText(text: string): string {
  if (parsed(text) === undefined) throw new Error('is no JSON: a text stands in double quotes there')
  return oneLine(text)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// Within JSON a line end can only stand between the values.
const oneLine = (text: string) => text.replace(/[\r\n]+/g, ' ')
