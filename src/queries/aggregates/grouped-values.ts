import { timeColumns } from '../../entities/indexes/sort-field.ts'
import { profileFlags, profileTexts } from '../../values/profile-fields.ts'
import type { Field, ValueType } from '../grammar/grammar.ts'
import { joinableRelationship, joinedValue, shownValue } from '../plan/attribute.ts'
import { type Comparable, instantColumn, numericColumn, textColumn } from '../plan/comparable.ts'
import type { Subject } from '../plan/condition.ts'
import { columnFragments, type Fragment, sql } from '../plan/fragment.ts'
import { dateOf, secondsOf, timeOf } from '../plan/json-value.ts'
import type { Column, ColumnLevels } from './columns.ts'
import type { GroupKey, ParsedMeasure, Path } from './parse.ts'

/** Returns the reference to a column of the grouped rows. */
export type InRow = (column: Column) => Fragment

/** A value of an attribute: as stored, and as the attribute's type. */
type Typed = { raw: Column; typed: Column }

/** Counts the values of another type: they are present, but null in the typed column. */
export const countMisfits = ({ raw, typed }: Typed, inRow: InRow) =>
  sql`count(*) filter (where ${inRow(typed)} is null and jsonb_typeof(${inRow(raw)}) <> 'null')`

/** How a value is printed as JSON, and the values that order it. */
type Form = { print: (value: Fragment) => Fragment; order: (value: Fragment) => Fragment[] }

/**
 * The column of a grouping field. `typed` is set if an attribute may have values of another type, which are counted.
 */
export type Key = Form & { column: Column; typed?: Typed }

/**
 * A measure of a group: its result, and how results are compared. The measure skips a value of another type, and
 * `typed` counts it.
 */
export type MeasureColumns = Form & {
  result: (inRow: InRow) => Fragment
  comparable: (result: Fragment) => Comparable
  typed?: Typed
}

/** The value that a read of the entity or of its target shows: jsonb for an attribute, else the type of the column. */
function addRaw({ field, across }: Path, columns: ColumnLevels, entity: Subject): Column {
  const subject = across
    ? { ...entity, stack_id: across.target_stack_id, row: columns.target(across, entity), relationDepth: 1 }
    : entity
  const of = across ? `target ${across.id}` : 'entity'
  if (field.kind !== 'attribute')
    return columns.addRaw(`${of} ${'column' in field ? field.column : field.kind}`, () => rowValue(field, subject.row))
  return columns.addRaw(`${of} attribute ${field.key}`, () => {
    const shown = across ? undefined : joinableRelationship(field.key, subject)
    return shown ? joinedValue(field.key, columns.target(shown, subject), subject) : shownValue(field.key, subject)
  })
}

const columnsOf = columnFragments(['external_id', 'id', 'active', ...profileTexts, ...profileFlags, ...timeColumns])

function rowValue(field: Exclude<Field, { kind: 'attribute' }>, row: Fragment): Fragment {
  switch (field.kind) {
    case 'state':
      return sql`(case when ${columnsOf.active(row)} then 'active' when not ${columnsOf.active(row)} then 'placeholder' end)`
    case 'id':
      return sql`(${columnsOf.id(row)}::text)`
    case 'record_id':
      return sql`(left(replace(${columnsOf.id(row)}::text, '-', ''), 24))`
    default:
      return columnsOf[field.column](row)
  }
}

/** The text of an attribute. A value that is no text becomes a text that matches no date and no time. */
const addText = (raw: Column, columns: ColumnLevels) =>
  columns.derive('text', raw, value => sql`((${value} #>> '{}') collate "C")`)

/** Orders a value by the value alone. */
const byItself = (value: Fragment) => [value]
const asText = {
  print: (value: Fragment) => sql`coalesce(to_json(${value})::text, 'null')`,
  order: (value: Fragment) => [sql`${value} collate "C"`],
}
const asBoolean = { print: asText.print, order: byItself }
const asJson = {
  print: (value: Fragment) => sql`coalesce(
    case when jsonb_typeof(${value}) = 'number' then trim_scale(${value}::numeric)::text else ${value}::text end, 'null')`,
  order: (value: Fragment) => [
    sql`case jsonb_typeof(${value})
      when 'number' then 0 when 'string' then 1 when 'boolean' then 2 when 'array' then 3 when 'object' then 4 end`,
    sql`case when jsonb_typeof(${value}) = 'number' then ${value}::numeric end`,
    sql`(${value} #>> '{}') collate "C"`,
  ],
}
/** Prints RFC 3339 in UTC with milliseconds, as reads show a time. */
const printTime = (time: Fragment) => sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const asTime = {
  print: (value: Fragment) => sql`coalesce(to_json(${printTime(value)})::text, 'null')`,
  order: byItself,
}
/** Prints a day as ISO 8601. PostgreSQL writes the year 0, which an offset can lead to, as 1 BC. */
const printDay = (day: Fragment) =>
  sql`(case when ${day} < '0001-01-01' then '0000' || to_char(${day}, '-MM-DD') else to_char(${day}, 'YYYY-MM-DD') end)`
const asDay = {
  print: (value: Fragment) => sql`coalesce(to_json(${printDay(value)})::text, 'null')`,
  order: byItself,
}
const asCount = {
  print: (count: Fragment) => sql`${count}::text`,
  comparable: (count: Fragment) => numericColumn(sql`${count}::numeric`),
  order: byItself,
}

/** Adds the column of a grouping field. */
export function addKey(key: GroupKey, columns: ColumnLevels, subject: Subject): Key {
  const { field, span, type } = key
  const raw = addRaw(key, columns, subject)
  if (span) return addSpan(field, type, span, raw, columns)
  if (field.kind === 'attribute') return { column: columns.derive('value', raw, withoutNull), ...asJson }
  if (field.kind === 'time') return { column: columns.derive('time', raw, toMilliseconds), ...asTime }
  return { column: raw, ...(field.kind === 'boolean' ? asBoolean : asText) }
}

const withoutNull = (value: Fragment) => sql`case when jsonb_typeof(${value}) <> 'null' then ${value} end`
const toMilliseconds = (time: Fragment) => sql`date_trunc('milliseconds', ${time})`

/** Groups by the first day of a span of time, as a date. */
function addSpan(
  field: Field,
  type: ValueType,
  { unit, timeZone }: NonNullable<GroupKey['span']>,
  raw: Column,
  columns: ColumnLevels,
): Key {
  const first = (local: Fragment) => sql`date_trunc(${unit}::text, ${local})::date`
  const inZone = (time: Fragment) => first(sql`(${time} at time zone ${timeZone}::text)`)
  const name = `${unit} in ${timeZone}`
  if (field.kind === 'time') return { column: columns.derive(name, raw, inZone), ...asDay }
  const text = field.kind === 'attribute' ? addText(raw, columns) : raw
  const ofText = (value: Fragment) =>
    type === 'date' ? first(sql`${dateOf(value)}::timestamp`) : inZone(timeOf(value))
  const column = columns.derive(name, text, ofText)
  return { column, ...asDay, ...(field.kind === 'attribute' && { typed: { raw, typed: column } }) }
}

const aggregateFunctions = {
  sum: (value: Fragment) => sql`sum(${value})`,
  avg: (value: Fragment) => sql`avg(${value})`,
  min: (value: Fragment) => sql`min(${value})`,
  max: (value: Fragment) => sql`max(${value})`,
  median: (value: Fragment) => percentileOf(value, 0.5),
}

/**
 * The percentile of numbers, interpolated between the two nearest values. PostgreSQL's own function computes with
 * doubles. The array is sorted after the aggregation: for an aggregate of sorted values, PostgreSQL would sort all rows
 * instead of grouping them by a hash table.
 */
const percentileOf = (value: Fragment, p: number) => sql`(
  select a.v[a.i] + (a.at - a.i) * (a.v[least(a.i + 1, cardinality(a.v))] - a.v[a.i]) from (
    select s.v, s.at, floor(s.at)::integer as i from (
      select u.v, 1 + ${String(p)}::numeric * (cardinality(u.v) - 1) as at from (
        select array(select n from unnest(array_agg(${value}) filter (where ${value} is not null)) n order by n) as v offset 0
      ) u
    ) s offset 0
  ) a)`

/** Adds the columns of a measure. */
export function addMeasure(measure: ParsedMeasure, columns: ColumnLevels, subject: Subject): MeasureColumns {
  const { op, field, type, p, across } = measure
  if (!field) return { result: () => sql`count(*)`, ...asCount }
  if (op === 'count_distinct') {
    const { column } = addKey({ field, type: type!, across }, columns, subject)
    return { result: inRow => sql`count(distinct ${inRow(column)})`, ...asCount }
  }
  const raw = addRaw({ field, type: type!, across }, columns, subject)
  const isAttribute = field.kind === 'attribute'
  if (op === 'count' && isAttribute)
    return { result: inRow => sql`(count(*) filter (where jsonb_typeof(${inRow(raw)}) <> 'null'))`, ...asCount }
  if (op === 'count') return { result: inRow => sql`count(${inRow(raw)})`, ...asCount }
  const typed = isAttribute ? addTyped(raw, type!, columns) : raw
  const isText = type === 'text' || (type === 'date' && !isAttribute)
  const typedIn = (inRow: InRow) => (isText ? sql`${inRow(typed)} collate "C"` : inRow(typed))
  return {
    result: inRow => (op === 'percentile' ? percentileOf(typedIn(inRow), p!) : aggregateFunctions[op](typedIn(inRow))),
    print: result => sql`coalesce(${printResult(result, type!, isAttribute)}, 'null')`,
    comparable: result => comparableResult(result, type!, isAttribute),
    order: isText ? asText.order : byItself,
    ...(isAttribute && { typed: { raw, typed } }),
  }
}

/** The value of an attribute as its type, or null for a value of another type. */
function addTyped(raw: Column, type: ValueType, columns: ColumnLevels): Column {
  const whenOf = (json: string, value: Fragment, typed: Fragment) =>
    sql`case when jsonb_typeof(${value}) = ${json}::text then ${typed} end`
  if (type === 'number') return columns.derive('number', raw, value => whenOf('number', value, sql`${value}::numeric`))
  if (type === 'text') return columns.derive('only text', raw, value => whenOf('string', value, sql`${value} #>> '{}'`))
  return columns.derive(type, addText(raw, columns), type === 'date' ? dateOf : secondsOf)
}

/** Prints a time of an attribute in UTC, with all digits of its fraction. */
function printSeconds(seconds: Fragment): Fragment {
  const time = sql`(to_timestamp(floor(${seconds})::float8) at time zone 'UTC')`
  const fraction = sql`nullif(substr(trim_scale(${seconds} - floor(${seconds}))::text, 2), '')`
  return sql`to_json(concat(${printDay(time)}, to_char(${time}, '"T"HH24:MI:SS'), ${fraction}, 'Z'))::text`
}

function printResult(result: Fragment, type: ValueType, isAttribute: boolean): Fragment {
  if (type === 'number') return sql`trim_scale(${result})::text`
  if (type !== 'datetime') return sql`to_json(${result})::text`
  if (!isAttribute) return sql`to_json(${printTime(result)})::text`
  return sql`case when ${result} is not null then ${printSeconds(result)} end`
}

function comparableResult(result: Fragment, type: ValueType, isAttribute: boolean): Comparable {
  if (type === 'number') return numericColumn(result)
  if (type === 'datetime') return instantColumn(isAttribute ? result : sql`extract(epoch from ${result})`)
  return textColumn(type === 'date' ? sql`(${result}::text)` : result)
}
