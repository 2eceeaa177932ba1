import { timeColumns } from '../../entities/indexes/sort-field.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../../values/profile-fields.ts'
import type { Field, ValueType } from '../grammar/grammar.ts'
import { joinableRelationship, joinedValue, shownValue } from '../plan/attribute.ts'
import { type Comparable, instantColumn, numericColumn, testOf, textColumn } from '../plan/comparable.ts'
import { compileCondition } from '../plan/compile.ts'
import { countUpTo, distinctCandidates, type Subject } from '../plan/condition.ts'
import {
  allOf,
  always,
  columnFragments,
  columnNames,
  commaSeparated,
  type Fragment,
  Parameter,
  type Rendered,
  render,
  sql,
} from '../plan/fragment.ts'
import { dateOf, secondsOf, timeOf } from '../plan/json-value.ts'
import { type Column, ColumnLevels, type Source } from './columns.ts'
import type { GroupKey, ParsedAggregate, ParsedMeasure, Path } from './parse.ts'
import { maxGroups } from './schema.ts'

/** The most bytes of the groups of an answer. */
export const maxGroupBytes = 8 * 1024 * 1024
/** With more candidates of an index, it takes less time to read the whole stack. */
const maxCandidates = 50_000
/** The entities at the start of a stack that show soon whether there are too many groups. */
const probedEntities = 20_000

/** The groups as JSON, without their brackets. Null if they are too many or too large. */
export type AggregateRow = { sequence: number; groups: number; bytes: number; json: string | null; skipped: number[] }

type AggregateStatements = {
  /** Counts the candidates of an index, up to one more than {@link maxCandidates}. Absent if no index gives candidates. */
  countCandidates?: Rendered
  /** Counts the groups of the first entities of the stack, up to one more than {@link maxGroups}. Absent if any number may be cut. */
  probe?: Rendered
  /** Reads the groups. */
  aggregate(useCandidates: boolean): Rendered
  /** Declares the cursor {@link fetchPart} of any number of groups. */
  stream(useCandidates: boolean): Rendered
}

/** Lines of groups, of about {@link partBytes}. The last row has what is counted of all groups instead. */
export type PartRow = { lines: string | null; sequence: number; skipped: number[] }

/** Reads the next part of the groups of {@link AggregateStatements.stream}. */
export const fetchPart: Rendered = { text: 'fetch next from groups', values: [] }

const partBytes = 128 * 1024

/** Whether it takes less time to look up the candidates than to read the whole stack. */
export const areFew = ({ count }: { count: number }) => count <= maxCandidates

/**
 * Builds the statements of an aggregate. PostgreSQL's planner has no influence on whether the stack is read or the candidates of an
 * index are looked up. PostgreSQL reads a large stack with several processes.
 */
export function aggregateStatements(
  parsed: ParsedAggregate,
  definitions: Definitions,
  stack_id: number,
): AggregateStatements {
  const { condition, keys } = parsed
  const organization = new Parameter(definitions.organization_id)
  const {
    check,
    candidates: [best],
  } = compileCondition(condition, definitions, stack_id, organization)
  const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack_id}::integer`
  const subject: Subject = { definitions, organization, stack_id, row: sql`e`, relationDepth: 0 }
  const build = (fragment: Fragment) => render(fragment, [organization])
  const matching: Source = { from: sql`entities e`, where: sql`${own} and ${check}` }
  const found = best && {
    from: sql`unnest(array(${distinctCandidates(best)})) candidate(id)
      cross join lateral (select e.* from entities e where ${own} and e.id = candidate.id and ${best.rest} offset 0) e`,
    where: always,
  }
  const first: Source = {
    from: sql`(select e.* from entities e where ${own} order by e.id limit ${probedEntities}::integer) e`,
    where: check,
  }
  const sourceOf = (useCandidates: boolean) => (useCandidates && found ? found : matching)
  return {
    ...(best && { countCandidates: build(countUpTo(best, maxCandidates)) }),
    ...(keys.length > 0 && !isCut(parsed) && { probe: build(countGroups(keys, first, subject)) }),
    aggregate: useCandidates => build(selectGroups(parsed, sourceOf(useCandidates), subject)),
    stream: useCandidates => build(declareParts(parsed, sourceOf(useCandidates), subject)),
  }
}

/** Whether the answer may have fewer groups than there are. */
const isCut = ({ having, limit }: ParsedAggregate) => having.length > 0 || limit !== undefined

/**
 * Counts the groups up to one too many. A recursive query returns its rows one by one, each once, so PostgreSQL stops reading with
 * the group that is too much.
 */
function countGroups(keys: readonly GroupKey[], source: Source, subject: Subject): Fragment {
  const columns = new ColumnLevels()
  const added = keys.map(key => addKey(key, columns, subject).column)
  const values = added.map(column => columns.atTop(column))
  const names = commaSeparated(columnNames.slice(0, keys.length))
  return sql`with recursive g(${names}) as (
      select ${commaSeparated(values)} from (${columns.select(source)}) r(${commaSeparated(columns.names)})
      union select ${names} from g where false
    ) select count(*)::integer as groups from (select from g limit ${maxGroups + 1}::integer) l`
}

/** The groups as JSON in one text, with what is counted of them. */
function selectGroups(parsed: ParsedAggregate, source: Source, subject: Subject): Fragment {
  return sql`${printGroups(parsed, source, subject, maxGroups + 1)}, total as (
      select count(*)::integer as groups, coalesce(sum(octet_length(p.line)), 0)::bigint as bytes from printed p
    )
    select h.sequence, t.groups, t.bytes,
      case when t.groups <= ${maxGroups}::integer and t.bytes <= ${maxGroupBytes}::integer then (
        select string_agg(p.line, ',' order by p.position) from printed p
      ) end as json,
      ${sumOfSkipped} as skipped
    from change_heads h cross join total t where h.organization_id = ${subject.organization}`
}

const sumOfSkipped = sql`array(select sum(s.count)::float8 from g, unnest(g.skipped) with ordinality s(count, position)
  group by s.position order by s.position)`

/**
 * Declares a cursor of {@link PartRow}s. PostgreSQL computes the groups for the first part. They need not be in memory, and are read no
 * faster than they are sent.
 */
function declareParts(parsed: ParsedAggregate, source: Source, subject: Subject): Fragment {
  return sql`declare groups no scroll cursor for ${printGroups(parsed, source, subject, null)}, sized as (
      select p.line, p.position, sum(octet_length(p.line)) over (order by p.position) / ${partBytes}::integer as part from printed p
    )
    select s.part, string_agg(s.line, chr(10) order by s.position) || chr(10) as lines, null::bigint as sequence, null::float8[] as skipped
    from sized s group by s.part
    union all select null, null, h.sequence, ${sumOfSkipped} from change_heads h where h.organization_id = ${subject.organization}
    order by part nulls last`
}

/**
 * The tables `g` of the groups and `printed` of the lines of those that are selected, with their positions. Groups beyond `max` need not be
 * read.
 */
function printGroups(parsed: ParsedAggregate, source: Source, subject: Subject, max: number | null): Fragment {
  const { keys, measures, having, sort, limit = max } = parsed
  const columns = new ColumnLevels()
  const grouped = keys.map(key => addKey(key, columns, subject))
  const measured = measures.map(measure => addMeasure(measure, columns, subject))
  const entity = keys.some(leadsToMany) ? columns.addRaw('the entity', () => sql`${subject.row}.id`) : undefined
  // All columns are added now, so the number of levels is known.
  const inRow = (column: Column) => sql`r.${columns.atTop(column)}`
  const group = grouped.map(({ column }) => inRow(column))
  const misfits = [...grouped, ...measured].map(({ typed }) => (typed ? countMisfits(typed, inRow) : sql`0`))
  if (entity) inRow(entity)
  const computed = [...group, ...measured.map(({ result }) => result(inRow))]
  const named = computed.map((value, index) => sql`${value} as ${columnNames[index]!}`)
  const ofGroup = computed.map((_, index) => sql`g.${columnNames[index]!}`)
  const ofMeasure = ofGroup.slice(keys.length)
  const line = sql`concat('{"by":[', ${listed(grouped.map(({ print }, index) => print(ofGroup[index]!)))},
    '],"measures":[', ${listed(measured.map(({ print }, index) => print(ofMeasure[index]!)))}, ']}')`
  const passes = having.flatMap(({ index, tests }) => {
    const value = measured[index]!.comparable(ofMeasure[index]!)
    return tests.map(test => testOf(value, test))
  })
  const ordersOf = { group: grouped, measure: measured }
  const valuesOf = { group: ofGroup, measure: ofMeasure }
  const orders = [
    ...sort.flatMap(({ of, index, isDescending }) => {
      const values = ordersOf[of][index]!.order(valuesOf[of][index]!)
      return isDescending ? values.map(value => sql`${value} desc nulls last`) : values
    }),
    ...grouped.flatMap(({ order }, index) => order(ofGroup[index]!)),
  ]
  const rows = sql`(${columns.select(source)}) r(${commaSeparated(columns.names)})`
  const ofTargets = grouped.map(({ typed }, index) =>
    typed && leadsToMany(keys[index]!) ? columns.atTop(typed.raw) : undefined,
  )
  const { from, skipped } = entity
    ? onceInGroup(rows, columns.names, misfits, ofTargets)
    : { from: rows, skipped: misfits }
  return sql`with g as materialized (
      select ${commaSeparated([...named, sql`array[${commaSeparated(skipped)}] as skipped`])}
      from ${from}
      ${group.length === 0 ? sql`` : sql`group by ${commaSeparated(group)}`}
      limit ${isCut(parsed) ? null : max}::integer
    ), printed as materialized (
      select ${line} as line, row_number() over (${orderedBy(orders)}) as position from (
        select * from g where ${allOf(passes)} ${orderedBy(orders)} limit ${limit}::integer
      ) g
    )`
}

const leadsToMany = ({ across }: GroupKey) => across?.cardinality === 'many'

/**
 * The rows to group, with each entity once in each group: several of its targets may have the same value. `misfits` counts the values of
 * another type. Those of the columns `ofTargets` are counted before these columns are left out.
 */
function onceInGroup(
  rows: Fragment,
  names: readonly Fragment[],
  misfits: readonly Fragment[],
  ofTargets: readonly (Fragment | undefined)[],
): { from: Fragment; skipped: Fragment[] } {
  const kept = commaSeparated(names.filter(name => !ofTargets.includes(name)).map(name => sql`r.${name}`))
  const nameOf = (index: number) => columnNames[names.length + index]!
  const counts = ofTargets.flatMap((column, index) => (column ? [sql`, ${misfits[index]!} as ${nameOf(index)}`] : []))
  return {
    from: sql`(select ${counts.reduce((before, count) => sql`${before}${count}`, kept)} from ${rows} group by ${kept}) r`,
    skipped: misfits.map((count, index) => (ofTargets[index] ? sql`sum(r.${nameOf(index)})` : count)),
  }
}

const orderedBy = (orders: readonly Fragment[]) =>
  orders.length === 0 ? sql`` : sql`order by ${commaSeparated(orders)}`

const listed = (texts: readonly Fragment[]) =>
  texts.length === 0 ? sql`''` : sql`concat_ws(',', ${commaSeparated(texts)})`

/** Returns a column of the rows that are grouped. */
type InRow = (column: Column) => Fragment

/** A value of an attribute, as it is and as its type. */
type Typed = { raw: Column; typed: Column }

/** Counts the values that are not of their type: they are present, but null as their type. */
const countMisfits = ({ raw, typed }: Typed, inRow: InRow) =>
  sql`count(*) filter (where ${inRow(typed)} is null and jsonb_typeof(${inRow(raw)}) <> 'null')`

/** The value that a read of the entity or of its target shows: jsonb of an attribute, otherwise of the column's type. */
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

/** The text of an attribute. A value of another type than text looks like no date and no time. */
const addText = (raw: Column, columns: ColumnLevels) =>
  columns.derive('text', raw, value => sql`((${value} #>> '{}') collate "C")`)

/** A field that groups: its column, and how a value becomes JSON and is ordered. */
type Key = {
  column: Column
  typed?: Typed
  print: (value: Fragment) => Fragment
  order: (value: Fragment) => Fragment[]
}

const asText = {
  print: (value: Fragment) => sql`coalesce(to_json(${value})::text, 'null')`,
  order: (value: Fragment) => [sql`${value} collate "C"`],
}
const asBoolean = { print: asText.print, order: (value: Fragment) => [value] }
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
/** RFC 3339 in UTC with milliseconds, as reads show a time. */
const printTime = (time: Fragment) => sql`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const asTime = {
  print: (value: Fragment) => sql`coalesce(to_json(${printTime(value)})::text, 'null')`,
  order: asBoolean.order,
}

function addKey(key: GroupKey, columns: ColumnLevels, subject: Subject): Key {
  const { field, span, type } = key
  const raw = addRaw(key, columns, subject)
  if (span) return addSpan(field, type, span, raw, columns)
  if (field.kind === 'attribute') {
    const column = columns.derive(
      'value',
      raw,
      value => sql`case when jsonb_typeof(${value}) <> 'null' then ${value} end`,
    )
    return { column, ...asJson }
  }
  if (field.kind === 'time')
    return { column: columns.derive('time', raw, value => sql`date_trunc('milliseconds', ${value})`), ...asTime }
  return { column: raw, ...(field.kind === 'boolean' ? asBoolean : asText) }
}

/** A day as ISO 8601 has it. PostgreSQL calls the year 0, which an offset can lead to, 1 BC. */
const printDay = (day: Fragment) =>
  sql`(case when ${day} < '0001-01-01' then '0000' || to_char(${day}, '-MM-DD') else to_char(${day}, 'YYYY-MM-DD') end)`
const asDay = {
  print: (value: Fragment) => sql`coalesce(to_json(${printDay(value)})::text, 'null')`,
  order: asBoolean.order,
}

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

/**
 * A measure of a group: its result, how that becomes JSON, is compared and ordered, and the value of a row, which is not measured if it is
 * of another type.
 */
type MeasureColumns = {
  result: (inRow: InRow) => Fragment
  print: (result: Fragment) => Fragment
  comparable: (result: Fragment) => Comparable
  order: (result: Fragment) => Fragment[]
  typed?: Typed
}

const asCount = {
  print: (count: Fragment) => sql`${count}::text`,
  comparable: (count: Fragment) => numericColumn(sql`${count}::numeric`),
  order: (count: Fragment) => [count],
}

const aggregateFunctions = {
  sum: (value: Fragment) => sql`sum(${value})`,
  avg: (value: Fragment) => sql`avg(${value})`,
  min: (value: Fragment) => sql`min(${value})`,
  max: (value: Fragment) => sql`max(${value})`,
  median: (value: Fragment) => percentileOf(value, 0.5),
}

/**
 * The percentile of numbers, interpolated between the two values next to it. PostgreSQL's own function computes with doubles. An array is
 * sorted afterwards, because PostgreSQL would sort all rows for an aggregate of sorted values, and groups them by a hash table otherwise.
 */
const percentileOf = (value: Fragment, p: number) => sql`(
  select a.v[a.i] + (a.at - a.i) * (a.v[least(a.i + 1, cardinality(a.v))] - a.v[a.i]) from (
    select s.v, s.at, floor(s.at)::integer as i from (
      select u.v, 1 + ${String(p)}::numeric * (cardinality(u.v) - 1) as at from (
        select array(select n from unnest(array_agg(${value}) filter (where ${value} is not null)) n order by n) as v offset 0
      ) u
    ) s offset 0
  ) a)`

function addMeasure(measure: ParsedMeasure, columns: ColumnLevels, subject: Subject): MeasureColumns {
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
    order: isText ? asText.order : asBoolean.order,
    ...(isAttribute && { typed: { raw, typed } }),
  }
}

/** The value of an attribute as its type. Null if it is of another type. */
function addTyped(raw: Column, type: ValueType, columns: ColumnLevels): Column {
  const whenOf = (json: string, value: Fragment, typed: Fragment) =>
    sql`case when jsonb_typeof(${value}) = ${json}::text then ${typed} end`
  if (type === 'number') return columns.derive('number', raw, value => whenOf('number', value, sql`${value}::numeric`))
  if (type === 'text') return columns.derive('only text', raw, value => whenOf('string', value, sql`${value} #>> '{}'`))
  return columns.derive(type, addText(raw, columns), type === 'date' ? dateOf : secondsOf)
}

/** Prints a time of an attribute in UTC, with as many digits of its fraction as it has. */
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
