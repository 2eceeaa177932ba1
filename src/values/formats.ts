import ipaddr from 'ipaddr.js'
import { hasInvisible } from './invisible-characters.ts'

/** A format of a string: its predicate, and the message for a string that fails it. */
export type Format = { holds: (text: string) => boolean; message: string }

const daysOfMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const isLeapYear = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const twoDigits = (text: string, at: number) => (text.charCodeAt(at) - 48) * 10 + text.charCodeAt(at + 1) - 48

/** `YYYY-MM-DD`, an existing day in the years 0001 to 9999. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const [month, day] = [twoDigits(text, 5), twoDigits(text, 8)]
  const days = month === 2 && isLeapYear(year) ? 29 : (daysOfMonth[month - 1] ?? 0)
  return year >= 1 && day >= 1 && day <= days
}

/** The offset of UTC+14, where each day begins first. */
const earliestDayMs = 14 * 3_600_000

/** A date from 1850-01-01 to the current day in the earliest time zone. */
export function isDateOfBirth(text: string): boolean {
  return isDate(text) && text >= '1850-01-01' && Date.parse(text) <= Date.now() + earliestDayMs
}

/**
 * A date and time of RFC 3339 with its offset and at most nine digits of a second. A second of 60 is refused, even for a real leap second: neither
 * JavaScript nor PostgreSQL can store one, and a stored value must read back as it was sent.
 */
export function isDateTime(text: string): boolean {
  const time = /^[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
  return isDate(text.slice(0, 10)) && time.test(text.slice(10))
}

/**
 * UTC, or a time zone of the IANA database with its region. PostgreSQL reads a name without a region, such as CET, as
 * an abbreviation, which has no daylight saving time.
 */
export function isTimeZone(text: string): boolean {
  if (text === 'UTC') return true
  if (!/^[A-Za-z][\w+-]*(?:\/[\w+-]+)+$/.test(text)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}

/** The message for a time zone that kith or the database does not know. */
export const unknownTimeZone = 'must be UTC or an IANA time zone with its region, such as Europe/Berlin'

const earliestCollectionMs = Date.parse('1990-01-01T00:00:00Z')
/** The time by which the clocks of clients may be ahead. */
const clockAllowanceMs = 60_000

/** A date and time of RFC 3339 from 1990 to a minute from now. */
function isCollectionTime(text: string): boolean {
  if (!isDateTime(text)) return false
  const timeMs = Date.parse(text.toUpperCase())
  return timeMs >= earliestCollectionMs && timeMs <= Date.now() + clockAllowanceMs
}

/** An IPv4 address of four decimal numbers, or an IPv6 address without a zone. */
export const isIpAddress = (text: string): boolean =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'))

/**
 * 1 to 255 characters (code points), without control characters. `.` and `..` are refused, because a URL path cannot
 * contain them.
 */
export function isExternalId(text: string): boolean {
  if (text === '' || text === '.' || text === '..' || /\p{Cc}/u.test(text)) return false
  // A character has one or two UTF-16 code units.
  return text.length <= 255 || (text.length <= 510 && [...text].length <= 255)
}

/** A UUID of any version in the canonical form with hyphens, in upper or lower case. */
export const isUuid = (text: string): boolean => /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(text)

/** The first and the last UUID. No entity has one of them, so all entities are between them. */
export const [firstId, lastId] = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']

/** An ObjectId: 24 hexadecimal digits in upper or lower case. */
export const isObjectId = (text: string): boolean => /^[\da-f]{24}$/i.test(text)

// The uuid column of a record holds its ObjectId in the first 12 bytes. The other 4 bytes are zero.
const objectIdPadding = '00000000'

/** The stored uuid of the record with this `record_id`. */
export const uuidOfRecord = (record_id: string): string =>
  `${record_id.toLowerCase()}${objectIdPadding}`.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/** The `record_id` of the record with this stored uuid. */
export const recordIdOf = (uuid: string): string => uuid.replaceAll('-', '').slice(0, -objectIdPadding.length)

// A fast path for most addresses. A matching text of at most 64 characters has no part that is too long.
const plainEmail = /^[\w+-]+(?:\.[\w+-]+)*@(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)+[a-z]{2,}$/i
// Beyond ASCII (RFC 6531), all characters are allowed except white space and invisible ones.
const forbiddenInLocal = /[^\w!#$%&'*+/=?^`{|}~.\u{80}-\u{10ffff}-]|[\p{White_Space}\p{Cs}]/u
const internationalLabel = /^[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?$/u

/**
 * An address `local@domain`: a dot-atom of at most 64 bytes, and a domain of at least two labels, the last of which is not
 * a number. UTF-8 is allowed on both sides; quoted locals, comments and address literals are not. Source: RFC 5321, 6531.
 */
export function isEmail(text: string): boolean {
  if (text.length <= 64 && plainEmail.test(text)) return true
  if (hasInvisible(text)) return false
  const at = text.lastIndexOf('@')
  const [local, domain] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)]
  if (at < 1 || Buffer.byteLength(local) > 64 || Buffer.byteLength(domain) > 253) return false
  const labels = domain.split('.')
  if (labels.length < 2 || labels.some(label => label.length > 63) || /^\d+$/.test(labels.at(-1)!)) return false
  const isDotted = !local.startsWith('.') && !local.endsWith('.') && !local.includes('..')
  return isDotted && !forbiddenInLocal.test(local) && labels.every(label => internationalLabel.test(label))
}

const languageTag = new RegExp(
  [
    '^(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})', // language, with its extended languages
    '(?:-[a-z]{4})?', // script
    '(?:-(?:[a-z]{2}|\\d{3}))?', // region
    '(?:-(?:[a-z\\d]{5,8}|\\d[a-z\\d]{3}))*', // variants
    '(?:-[a-wyz\\d](?:-[a-z\\d]{2,8})+)*', // extensions
    '(?:-x(?:-[a-z\\d]{1,8})+)?$', // private use
  ].join(''),
)
const privateTag = /^x(?:-[a-z\d]{1,8})+$/
// The other grandfathered tags match the pattern of a language tag.
const irregularTags = new Set(
  'en-gb-oed i-ami i-bnn i-default i-enochian i-hak i-klingon i-lux i-mingo i-navajo i-pwn i-tao i-tay i-tsu sgn-be-fr sgn-be-nl sgn-ch-de'.split(
    ' ',
  ),
)

/** A well-formed language tag of BCP 47 (RFC 5646, 2.1 and 2.2.9) in any case, with `_` accepted for `-`. */
export function isLanguage(text: string): boolean {
  if (/^[a-z]{2,3}(?:[-_][a-z]{2})?$/i.test(text)) return true
  if (!/^[\w-]+$/.test(text)) return false
  const tag = text.toLowerCase().replaceAll('_', '-')
  if (irregularTags.has(tag) || privateTag.test(tag)) return true
  return languageTag.test(tag) && !repeats(tag.split('-x-')[0]!.split('-').slice(1))
}

/** Whether a variant or the singleton of an extension occurs twice. */
function repeats(subtags: string[]): boolean {
  const firstSingleton = subtags.findIndex(subtag => subtag.length === 1)
  const end = firstSingleton === -1 ? subtags.length : firstSingleton
  const variants = subtags.slice(0, end).filter(subtag => subtag.length > 4 || /^\d.{3}$/.test(subtag))
  const singletons = subtags.filter(subtag => subtag.length === 1)
  return new Set(variants).size < variants.length || new Set(singletons).size < singletons.length
}

export const formats: Record<string, Format> = {
  'collection-time': {
    holds: isCollectionTime,
    message: 'must be a date and time with its offset, as in RFC 3339, from 1990 to now',
  },
  date: { holds: isDate, message: 'must be a date, YYYY-MM-DD' },
  'date-of-birth': { holds: isDateOfBirth, message: 'must be a date from 1850-01-01 to today, YYYY-MM-DD' },
  'date-time': { holds: isDateTime, message: 'must be a date and time with its offset, as in RFC 3339' },
  email: {
    holds: isEmail,
    message: 'must be an email address, such as ada@example.com, without quotes, comments and IP addresses',
  },
  'entity-id': { holds: text => isUuid(text) || isObjectId(text), message: 'must be a UUID or 24 hexadecimal digits' },
  'external-id': {
    holds: isExternalId,
    message: 'must be 1 to 255 characters, without control characters, and not . or ..',
  },
  'ip-address': { holds: isIpAddress, message: 'must be an IPv4 or IPv6 address, such as 192.0.2.7 or 2001:db8::7' },
  language: { holds: isLanguage, message: 'must be a language code, such as en or pt-BR' },
  'object-id': { holds: isObjectId, message: 'must be 24 hexadecimal digits' },
  'time-zone': { holds: isTimeZone, message: unknownTimeZone },
  uuid: { holds: isUuid, message: 'must be a UUID' },
}
