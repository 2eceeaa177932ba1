import { datePattern, timePattern } from '../../db/time-text.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { isDate } from '../../values/formats.ts'
import { instantOf, numericOf } from '../../values/instant.ts'
import type { RangeOperator } from '../grammar/grammar.ts'
import { type Comparable, dayIsIn, rangeSigns, searchText } from './comparable.ts'
import { always, type Fragment, never, Parameter, sql } from './fragment.ts'

// A value that is older than the declaration of its key may have any type, so it is checked before the cast.
const matchesDate = sql`~ ${datePattern}::text`
const matchesTime = sql`~ ${timePattern}::text`

/**
 * Converts an RFC 3339 date and time to seconds since 1970, to the nanosecond. It uses only immutable functions and accepts
 * offsets that a timestamp refuses.
 */
const seconds = (text: Fragment) => sql`(
  (make_date(left(${text}, 4)::integer, substr(${text}, 6, 2)::integer, substr(${text}, 9, 2)::integer)
    - date '1970-01-01')::bigint * 86400
  + substr(${text}, 12, 2)::integer * 3600 + substr(${text}, 15, 2)::integer * 60 + substr(${text}, 18, 2)::integer
  - case when right(${text}, 1) in ('Z', 'z') then 0 else (left(right(${text}, 6), 1) || '1')::integer
      * (substr(right(${text}, 5), 1, 2)::integer * 3600 + right(${text}, 2)::integer * 60) end
  + ('0.' || coalesce(substring(${text} from '[.]([0-9]{1,9})'), '0'))::numeric)`

const textIn = (value: Fragment) => sql`(${value} #>> '{}')`

/** A comparison of the text of a JSON value. False if the value is missing or not a string. */
const whenText = (value: Fragment, test: Fragment) =>
  sql`(case when jsonb_typeof(${value}) = 'string' then ${test} else false end)`

// PostgreSQL matches the patterns in 8 µs. Most dates and times have one of the forms below, which take 2 µs, because
// PostgreSQL looks up a part of a text in a list in 0.25 µs.
const twoDigits = (from: number, until: number) =>
  Array.from({ length: until - from + 1 }, (_, index) => String(from + index).padStart(2, '0'))
const [months, days, hours, sixty] = [twoDigits(1, 12), twoDigits(1, 31), twoDigits(0, 23), twoDigits(0, 59)] as const
const usual = {
  years: new Parameter(['19', '20'].flatMap(century => twoDigits(0, 99).map(year => century + year))),
  // Only the pattern handles leap years.
  days: new Parameter(months.flatMap(month => days.map(day => `${month}-${day}`).filter(day => isDate(`2001-${day}`)))),
  minutes: new Parameter(hours.flatMap(hour => sixty.map(minute => `${hour}:${minute}`))),
  seconds: new Parameter(sixty),
  milliseconds: new Parameter(Array.from({ length: 1_000 }, (_, index) => String(index).padStart(3, '0'))),
}
const isIn = (text: Fragment, list: Parameter) => sql`${text} = any(${list}::text[])`
const isUsualDay = (text: Fragment) =>
  sql`(${isIn(sql`left(${text}, 4)`, usual.years)} and ${isIn(sql`substr(${text}, 6, 5)`, usual.days)})`
const isUsualTime = (text: Fragment) => sql`(
  (${text} like '____-__-__T__:__:__.___Z' and ${isIn(sql`substr(${text}, 21, 3)`, usual.milliseconds)}
    or ${text} like '____-__-__T__:__:__Z')
  and ${isUsualDay(text)} and ${isIn(sql`substr(${text}, 12, 5)`, usual.minutes)}
  and ${isIn(sql`substr(${text}, 18, 2)`, usual.seconds)})`
const isAnyTime = (text: Fragment) => sql`(left(${text}, 10) ${matchesDate} and substr(${text}, 11) ${matchesTime})`

/** A text, compared by code point, as a date, or null if it is not a date. */
export const dateOf = (text: Fragment) =>
  sql`(case when ${text} like '____-__-__' and ${isUsualDay(text)} or ${text} ${matchesDate} then ${text}::date end)`

/** A text, compared by code point, as a time in whole seconds, or null if it is not a date and time. */
export const timeOf = (text: Fragment) => sql`(case
  when ${isUsualTime(text)} then left(${text}, 19)::timestamp at time zone 'UTC'
  when ${isAnyTime(text)} then to_timestamp(floor(${seconds(text)})::float8) end)`

/** A text, compared by code point, as seconds since 1970, or null if it is not a date and time. */
export const secondsOf = (text: Fragment) => sql`(case
  when ${isUsualTime(text)} then extract(epoch from left(${text}, 19)::timestamp) + ('0' || rtrim(substr(${text}, 20), 'Z'))::numeric
  when ${isAnyTime(text)} then ${seconds(text)} end)`

/**
 * A JSON value that may be absent. JSON null counts as absent. A value whose type differs from the operand's does not match.
 * Texts are ordered by code point, numbers by size, and values of a declared date or datetime by time.
 */
export function jsonValue(value: Fragment, type: AttributeType | undefined): Comparable {
  return {
    isMissing: sql`coalesce(${value} = 'null'::jsonb, true)`,
    equalsAny: values => {
      const texts = values.map(operand => JSON.stringify(operand))
      if (texts.length === 0) return never
      return texts.length === 1
        ? sql`coalesce(${value} = ${texts[0]}::jsonb, false)`
        : sql`coalesce(${value} = any(${texts}::jsonb[]), false)`
    },
    isInRange: (operator, operand) => compareRange(value, type, operator, operand),
    matchesText: (operator, operand) => whenText(value, searchText(textIn(value), operator, operand)),
    isOnDay: days => whenText(value, sql`(${textIn(value)} ${matchesDate} and ${dayIsIn(textIn(value), days)})`),
  }
}

function compareRange(
  value: Fragment,
  type: AttributeType | undefined,
  operator: RangeOperator,
  operand: string | number,
): Fragment {
  const sign = rangeSigns[operator]
  if (typeof operand === 'number')
    return sql`(case when jsonb_typeof(${value}) = 'number' then ${value}::numeric ${sign} ${String(operand)}::numeric else false end)`
  const text = textIn(value)
  const byCodePoint = sql`${text} collate "C" ${sign} ${operand}::text`
  if (type === 'date') return whenText(value, sql`(${text} ${matchesDate} and ${byCodePoint})`)
  if (type !== 'datetime') return whenText(value, byCodePoint)
  const compared = sql`${seconds(sql`m.t`)} ${sign} ${numericOf(instantOf(operand))}::numeric`
  return whenText(
    value,
    sql`(select case when ${isNear(sql`m.t`, operator, operand)} and left(m.t, 10) ${matchesDate} and substr(m.t, 11) ${matchesTime}
        then ${compared} else false end
      from (select ${text} as t offset 0) m)`,
  )
}

const dayMs = 86_400_000

/**
 * A cheap test before a comparison: the day of a time, in its own offset, is near the operand. PostgreSQL matches the
 * patterns of a time in 8 µs, and compares a day in 0.3 µs, which most times do not pass.
 */
function isNear(text: Fragment, operator: RangeOperator, operand: string): Fragment {
  const isLower = operator === '$gt' || operator === '$gte'
  const instant = Date.parse(`${operand.slice(0, 10)}T00:00:00Z`) + (isLower ? -2 : 3) * dayMs
  const day = new Date(instant).toISOString().slice(0, 10)
  // Only years of four digits sort as texts.
  return /^\d{4}-/.test(day) ? sql`${text} collate "C" ${isLower ? sql`>=` : sql`<`} ${day}::text` : always
}
