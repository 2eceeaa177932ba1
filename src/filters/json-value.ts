import { instantOf, numericOf } from '../attributes/instant.ts'
import type { AttributeType } from '../organizations/definitions.ts'
import { type Comparable, rangeSigns, searchText } from './comparable.ts'
import { type Fragment, never, sql } from './fragment.ts'
import type { Range } from './grammar.ts'

// These accept the same dates as `isDate` and the same times as `isDateTime`. A value stored before its key was declared
// may be anything, so it must be checked before it is cast.
const isDate = sql`~ ('^(?!0000)([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)'
  || '|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)$')`
const isTime = sql`~ '^[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'`

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
  }
}

function compareRange(
  value: Fragment,
  type: AttributeType | undefined,
  operator: Range,
  operand: string | number,
): Fragment {
  const sign = rangeSigns[operator]
  if (typeof operand === 'number')
    return sql`(case when jsonb_typeof(${value}) = 'number' then ${value}::numeric ${sign} ${String(operand)}::numeric else false end)`
  const text = textIn(value)
  const byCodePoint = sql`${text} collate "C" ${sign} ${operand}::text`
  if (type === 'date') return whenText(value, sql`(${text} ${isDate} and ${byCodePoint})`)
  if (type !== 'datetime') return whenText(value, byCodePoint)
  const compared = sql`${seconds(sql`m.t`)} ${sign} ${numericOf(instantOf(operand))}::numeric`
  return whenText(
    value,
    sql`(select case when left(m.t, 10) ${isDate} and substr(m.t, 11) ${isTime} then ${compared} else false end
      from (select ${text} as t offset 0) m)`,
  )
}
