import type { Definitions } from '../../organizations/definitions.ts'
import { testOf } from '../plan/comparable.ts'
import { compileCondition } from '../plan/compile.ts'
import { countUpTo, distinctCandidates, type Subject } from '../plan/condition.ts'
import {
  allOf,
  always,
  columnNames,
  commaSeparated,
  type Fragment,
  Parameter,
  type Rendered,
  render,
  sql,
} from '../plan/fragment.ts'
import { type Column, ColumnLevels, type Source } from './columns.ts'
import { addKey, addMeasure, countMisfits, type Key, type MeasureColumns } from './grouped-values.ts'
import type { GroupKey, ParsedAggregate } from './parse.ts'
import { maxGroups } from './schema.ts'

/** The maximum size of the groups of an answer, in bytes. */
export const maxGroupBytes = 8 * 1024 * 1024
/** If an index gives more candidates than this, reading the whole stack takes less time. */
const maxCandidates = 50_000
/** The probe reads this many entities from the start of a stack, to find early that there are too many groups. */
const probedEntities = 20_000

/** The groups as JSON, without brackets. `json` is null if the groups are too many or too large. */
export type AggregateRow = { sequence: number; groups: number; bytes: number; json: string | null; skipped: number[] }

type AggregateStatements = {
  /**
   * Counts the candidates of an index, at most to one more than {@link maxCandidates}. Absent if no index has
   * candidates.
   */
  countCandidates?: Rendered
  /**
   * Counts the groups of the first entities of the stack, at most to one more than {@link maxGroups}. Absent if the
   * answer may leave groups out.
   */
  probe?: Rendered
  /** Reads the groups. */
  aggregate(useCandidates: boolean): Rendered
  /** Declares the cursor that {@link fetchPart} reads. The number of groups is not limited. */
  stream(useCandidates: boolean): Rendered
}

/** Lines of groups, about {@link partBytes} long. The last row has the counts of all groups instead. */
export type PartRow = { lines: string | null; sequence: number; skipped: number[] }

/** Reads the next part of the groups of {@link AggregateStatements.stream}. */
export const fetchPart: Rendered = { text: 'fetch next from groups', values: [] }

const partBytes = 128 * 1024

/** Whether looking up the candidates takes less time than reading the whole stack. */
export const areFew = ({ count }: { count: number }) => count <= maxCandidates

/**
 * Builds the statements of an aggregate. kith, not PostgreSQL's planner, decides between reading the stack and looking
 * up the candidates of an index. PostgreSQL reads a large stack in parallel.
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

/** Whether the answer may leave out groups. */
const isCut = ({ having, limit }: ParsedAggregate) => having.length > 0 || limit !== undefined

/**
 * Counts the groups up to one too many. A recursive query returns distinct rows one by one, so PostgreSQL stops reading
 * at the first group beyond the maximum.
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

/** Selects the groups as one JSON text, with the counts of all groups. */
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
 * Declares a cursor of {@link PartRow}s. PostgreSQL computes the groups for the first part. The groups need not fit
 * into memory, and kith reads them no faster than it sends them.
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
 * The tables `g` of the groups and `printed` of the lines of the selected groups, with their positions. PostgreSQL may
 * stop after `max` groups.
 */
function printGroups(parsed: ParsedAggregate, source: Source, subject: Subject, max: number | null): Fragment {
  const { keys, measures, having, limit = max } = parsed
  const columns = new ColumnLevels()
  const added = keys.map(key => addKey(key, columns, subject))
  const addedMeasures = measures.map(measure => addMeasure(measure, columns, subject))
  const entity = keys.some(leadsToMany) ? columns.addRaw('the entity', () => sql`${subject.row}.id`) : undefined
  // All columns have been added, so the number of levels is known.
  const inRow = (column: Column) => sql`r.${columns.atTop(column)}`
  const groupBy = added.map(({ column }) => inRow(column))
  const misfits = [...added, ...addedMeasures].map(({ typed }) => (typed ? countMisfits(typed, inRow) : sql`0`))
  if (entity) inRow(entity)
  const computed = [...groupBy, ...addedMeasures.map(({ result }) => result(inRow))]
  const named = computed.map((value, index) => sql`${value} as ${columnNames[index]!}`)
  const ofGroup = computed.map((_, index) => sql`g.${columnNames[index]!}`)
  const groups = added.map((key, index) => ({ ...key, value: ofGroup[index]! }))
  const results = addedMeasures.map((measure, index) => ({ ...measure, value: ofGroup[keys.length + index]! }))
  const passes = having.flatMap(({ index, tests }) => {
    const { comparable, value } = results[index]!
    const compared = comparable(value)
    return tests.map(test => testOf(compared, test))
  })
  const order = orderedBy(parsed, groups, results)
  const rows = sql`(${columns.select(source)}) r(${commaSeparated(columns.names)})`
  const ofTargets = added.map(({ typed }, index) =>
    typed && leadsToMany(keys[index]!) ? columns.atTop(typed.raw) : undefined,
  )
  const { from, skipped } = entity
    ? onceInGroup(rows, columns.names, misfits, ofTargets)
    : { from: rows, skipped: misfits }
  return sql`with g as materialized (
      select ${commaSeparated([...named, sql`array[${commaSeparated(skipped)}] as skipped`])}
      from ${from}
      ${groupBy.length === 0 ? sql`` : sql`group by ${commaSeparated(groupBy)}`}
      limit ${isCut(parsed) ? null : max}::integer
    ), printed as materialized (
      select ${lineOf(groups, results)} as line, row_number() over (${order}) as position from (
        select * from g where ${allOf(passes)} ${order} limit ${limit}::integer
      ) g
    )`
}

/** A key or a measure, with its column in a row of `g`. */
type OfGroup<Added extends Key | MeasureColumns> = Added & { value: Fragment }

/** A group as JSON. */
function lineOf(groups: readonly OfGroup<Key>[], results: readonly OfGroup<MeasureColumns>[]): Fragment {
  const printed = (all: readonly Pick<OfGroup<Key>, 'print' | 'value'>[]) =>
    all.length === 0 ? sql`''` : sql`concat_ws(',', ${commaSeparated(all.map(({ print, value }) => print(value)))})`
  return sql`concat('{"by":[', ${printed(groups)},
    '],"measures":[', ${printed(results)}, ']}')`
}

/** The requested order of the groups, then the order of the keys. */
function orderedBy(
  { sort }: ParsedAggregate,
  groups: readonly OfGroup<Key>[],
  results: readonly OfGroup<MeasureColumns>[],
): Fragment {
  const asked = sort.flatMap(({ of, index, isDescending }) => {
    const { order, value } = of === 'group' ? groups[index]! : results[index]!
    return isDescending ? order(value).map(each => sql`${each} desc nulls last`) : order(value)
  })
  const orders = [...asked, ...groups.flatMap(({ order, value }) => order(value))]
  return orders.length === 0 ? sql`` : sql`order by ${commaSeparated(orders)}`
}

const leadsToMany = ({ across }: GroupKey) => across?.cardinality === 'many'

/**
 * The rows to group, with each entity once in each group, because several of its targets may have the same value.
 * `misfits` counts the values of another type. The columns `ofTargets` are counted here and then left out.
 */
function onceInGroup(
  rows: Fragment,
  names: readonly Fragment[],
  misfits: readonly Fragment[],
  ofTargets: readonly (Fragment | undefined)[],
): { from: Fragment; skipped: Fragment[] } {
  const kept = names.filter(name => !ofTargets.includes(name)).map(name => sql`r.${name}`)
  const countName = (index: number) => columnNames[names.length + index]!
  const counts = ofTargets.flatMap((column, index) => (column ? sql`${misfits[index]!} as ${countName(index)}` : []))
  return {
    from: sql`(select ${commaSeparated([...kept, ...counts])} from ${rows} group by ${commaSeparated(kept)}) r`,
    skipped: misfits.map((count, index) => (ofTargets[index] ? sql`sum(r.${countName(index)})` : count)),
  }
}
