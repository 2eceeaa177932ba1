import { datePattern, timePattern } from '../db/time-text.ts'
import type { AttributeType } from '../values/attribute-rules.ts'

// A value that was stored before its attribute was declared may be anything. A value of another type gives null. No expression here raises
// an error, so one value never fails a query, and no message shows a value.

/** A text as a date. */
export const dateOf = (text: string): string => `case when ${text} ~ '${datePattern}' then ${text}::date end`

/** A text m.t as a moment, to the microsecond. A cast would refuse offsets and fractions that kith accepts. */
const momentOf = `case when left(m.t, 10) ~ '${datePattern}' and substr(m.t, 11) ~ '${timePattern}' then
    (left(m.t, 10)::date + substr(m.t, 12, 8)::time
      + make_interval(secs => ('0' || coalesce(substring(m.t from '[.][0-9]{1,6}'), ''))::float8)
      - case when right(m.t, 1) in ('Z', 'z') then interval '0' else make_interval(
          hours => left(right(m.t, 6), 3)::integer, mins => (left(right(m.t, 6), 1) || right(m.t, 2))::integer
        ) end) at time zone 'UTC' end`

const fromText = (value: string, result: string) => `(select ${result} from (select ${value} as t offset 0) m)`

const whenTyped = (value: string, type: string, result: string) =>
  `case when jsonb_typeof(${value}) = '${type}' then ${result} end`

const readers: Record<Exclude<AttributeType, 'person' | 'stack'>, (value: string) => string> = {
  text: value => whenTyped(value, 'string', `${value} #>> '{}'`),
  number: value => whenTyped(value, 'number', `${value}::numeric`),
  boolean: value => whenTyped(value, 'boolean', `${value}::boolean`),
  date: value => fromText(`${value} #>> '{}'`, dateOf('m.t')),
  datetime: value => fromText(`${value} #>> '{}'`, momentOf),
  json: value => `nullif(${value}, 'null'::jsonb)`,
}

/** A JSON value as a value of the type of its attribute. */
export const typedValue = (value: string, type: AttributeType): string => readers[type as keyof typeof readers](value)

/** A text as a moment. */
export const momentOfText = (text: string): string => fromText(text, momentOf)

/** A JSON array as an array of the type. A single value, which was stored before the attribute took lists, is a list of one. */
export const typedList = (value: string, type: AttributeType): string =>
  `(select array(
    select ${typedValue('x.value', type)}
    from jsonb_array_elements(case when jsonb_typeof(v.list) = 'array' then v.list else jsonb_build_array(v.list) end)
      with ordinality as x(value, n) order by x.n
  ) from (select ${value} as list offset 0) v where jsonb_typeof(v.list) <> 'null')`
