import { type Statement, statement } from '../db/db.ts'
import type { ReadEntity } from '../entities/entity-row.ts'
import type { SortField } from '../entities/indexes/sort-field.ts'
import { attributePart, textPart, timeTerm } from '../entities/indexes/sort-index-sql.ts'
import { noValueTerm } from '../entities/indexes/sort-terms.ts'
import { maxRowBytesOf, type Position, sizeToRead } from '../entities/read/pagination.ts'
import { pickedKeys, projectionValues } from '../entities/read/projection.ts'
import { countEntitiesSql, readRows, rowOfMembers, rowWithin } from '../entities/read/read-sql.ts'
import type { Definitions, SortIndex } from '../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../profile-fields.ts'
import { compileCondition, needsLinked } from './compile.ts'
import { allCandidates, allIndexes, countCandidatesUpTo, type IndexCandidates } from './condition.ts'
import { always, commaSeparated, constant, type Fragment, Parameter, render, sql, unionAll } from './fragment.ts'
import { type Condition, timeColumns } from './grammar.ts'
import type { Sort } from './sort.ts'

/**
 * A statement. Its text contains only constants and `$n`. `settings` tell the planner how to run it. One with a `name` has always the
 * same text, and is planned once per connection.
 */
export type Query = { text: string; values: unknown[]; settings?: Statement; name?: string }

// A walk of an index needs neither a sort nor a bitmap of many rows. Without them the planner can only read a range of the primary key
// of `terms` or `entities`. It would otherwise read all rows and sort them, whenever the statistics are missing or outdated, or when
// it underestimates how many rows match: of 300,000 people, a first page of three conditions takes 153 ms that way, and 7 ms by a walk.
const walkSettings = statement(
  '',
  `select set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)`,
)

/** Ends the settings of a query, so that the next one of the transaction is planned without them. */
export const plannerDefaultsSql = statement(
  '',
  `select set_config('enable_sort', 'on', true), set_config('enable_bitmapscan', 'on', true),
    set_config('enable_nestloop', 'on', true), set_config('enable_mergejoin', 'on', true)`,
)

export type MatchingStatements = {
  /** Reads the first `limit` matches after `start` among the candidates of this round, as rows of `ReadEntity`. */
  rows(start: string, limit: number, round: number): Query
  /** Reads the last entity that this round checks, or no row if it reaches the end. Absent after a round that checks all others. */
  boundary(start: string, round: number): Query | undefined
  /** What reads the page instead, if an index gives more candidates than `max`. */
  unlessFew?: { countCandidates: Query; max: number; others: MatchingStatements }
  /** Several indexes give candidates. If the first round does not fill the page, the one with the fewest gives those of the next rounds. */
  choice?: { countCandidates: Query; choose: (counts: readonly number[]) => MatchingStatements }
}

// Most candidates of an index pass the rest of the filter. If few do, each later round checks more candidates at once.
export const roundGrowth = 8
const maxCandidates = 100_000
/** The entities that a page of a condition on linked entities checks one by one: a third of a second to a second. */
export const walkedEntities = 50_000
const candidateCount = (position: Position, round: number) =>
  Math.min(2 * sizeToRead(position) * roundGrowth ** round, maxCandidates)

const wholeRow = rowWithin('$2')
const projectedRow = rowWithin('$2', { stack: '$3', mask: '$4', keys: '$5' })

/** The first parameters of a statement that reads rows: organization, maximum bytes of a row, stack. */
export function leadingParameters(
  { organization_id }: Definitions,
  stack_id: number,
  position: Position,
): [organization: Parameter, maxRowBytes: Parameter, stack: Parameter] {
  return [asParameter(organization_id), asParameter(maxRowBytesOf(position)), asParameter(stack_id)]
}

/** How a statement reads a row: SQL, and the parameters that it uses after the first three. */
type RowOfStatement = { row: string; parameters: Parameter[] }

/** For a statement that is planned once for all projections. */
function rowOf({ projection }: Position): RowOfStatement {
  if (!projection) return { row: wholeRow, parameters: [] }
  return { row: projectedRow, parameters: projectionValues(projection).map(asParameter) }
}

/** For a statement that is planned each time: it names only what the projection shows. */
export function rowOfProjection({ projection }: Position, definitions: Definitions, stack_id: number): RowOfStatement {
  if (!projection) return { row: wholeRow, parameters: [] }
  const keys = pickedKeys(projection)
  const relationshipsByKey = definitions.relationships.get(stack_id)
  const relationships = keys.flatMap(key => relationshipsByKey?.get(key) ?? []).map(({ id }) => id)
  const parameters = [keys, relationships].filter(each => each.length > 0).map(asParameter)
  const names = { keys: keys.length > 0 ? '$4' : undefined, relationships: relationships.length > 0 ? '$5' : undefined }
  return { row: rowOfMembers('$2', { mask: projection.mask, ...names }), parameters }
}

const asParameter = (value: unknown) => new Parameter(value)

/**
 * Builds the statements that read a page of matching entities. Without an index, a statement reads the stack in order and
 * checks each row. With one, it takes a limited number of candidate ids in order and looks up only those rows. PostgreSQL's
 * planner has no influence on which of the two is used.
 */
export function matchingStatements(
  condition: Condition,
  definitions: Definitions,
  stack_id: number,
  position: Position,
): MatchingStatements {
  const leading = leadingParameters(definitions, stack_id, position)
  const [organization, , stack] = leading
  const { row, parameters } = rowOfProjection(position, definitions, stack_id)
  const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack}::integer`
  const order = position.direction === 'asc' ? sql`asc` : sql`desc`
  const isAfter = (id: Fragment, start: string) =>
    position.direction === 'asc' ? sql`${id} > ${start}::uuid` : sql`${id} < ${start}::uuid`
  const read = (selection: Fragment, settings?: Statement): Query => {
    const { text, values } = render(selection, [...leading, ...parameters])
    return { text: readRows(text, row), values, ...(settings && { settings }) }
  }
  const { check, indexCandidates } = compileCondition(condition, definitions, stack_id, organization)
  const isLinked = needsLinked(condition)

  const walk = (): MatchingStatements => ({
    rows: (start, limit) =>
      read(
        sql`where ${own} and ${isAfter(sql`e.id`, start)} and ${check} order by e.id ${order} limit ${limit}::integer`,
        walkSettings,
      ),
    boundary: () => undefined,
  })

  // A page of what many entities satisfy ends early in the first walk. What few satisfy is found sooner by the links of all.
  const walkThenAll = (): MatchingStatements => {
    const ofAll = compileCondition(condition, definitions, stack_id, organization, true).check
    const last = (start: string) => sql`select b.id from entities b
      where b.organization_id = ${organization} and b.stack_id = ${stack}::integer and ${isAfter(sql`b.id`, start)}
      order by b.id ${order} offset ${walkedEntities - 1}::integer limit 1`
    const isWithin = (start: string) =>
      position.direction === 'asc'
        ? sql`e.id <= coalesce((${last(start)}), ${greatest}::uuid)`
        : sql`e.id >= coalesce((${last(start)}), ${nil}::uuid)`
    return {
      rows: (start, limit, round) =>
        round === 0
          ? read(
              sql`where ${own} and ${isAfter(sql`e.id`, start)} and ${isWithin(start)} and ${check}
                order by e.id ${order} limit ${limit}::integer`,
              walkSettings,
            )
          : read(
              sql`where ${own} and e.id = any(array(
                select m.id from (select e.id from entities e where ${own} and ${isAfter(sql`e.id`, start)} and ${ofAll} offset 0) m
                order by m.id ${order} limit ${limit}::integer
              )) order by e.id::text collate "C" ${order}`,
              hashSettings,
            ),
      boundary: (start, round) => (round === 0 ? render(last(start), [organization]) : undefined),
    }
  }

  if (!indexCandidates) return isLinked ? walkThenAll() : walk()
  const checkCandidates = ({ selects }: IndexCandidates): MatchingStatements => {
    const candidates = (start: string, round: number) => {
      // Links lead to the same entity many times. It is checked once.
      const first = (
        select: Fragment,
      ) => sql`select distinct i.id from (${select}) i(id) where ${isAfter(sql`i.id`, start)}
        order by i.id ${order} limit ${candidateCount(position, round)}::integer`
      // An index with its ids in order gives the first of half a million in a millisecond. All of them together would be sorted.
      return selects.length === 1 ? first(selects[0]!) : first(unionAll(selects.map(select => sql`(${first(select)})`)))
    }
    return {
      rows: (start, limit, round) =>
        // The lateral join checks candidate by candidate, and the rows are ordered as text. Without statistics, PostgreSQL could
        // otherwise plan a scan of the stack.
        read(sql`where ${own} and e.id = any(array(
            select distinct m.id from unnest(array(${candidates(start, round)})) candidate(id)
              cross join lateral (select e.id from entities e where ${own} and e.id = candidate.id and ${check} offset 0) m
            order by m.id ${order} limit ${limit}::integer
          )) order by e.id::text collate "C" ${order}`),
      boundary: (start, round) =>
        render(
          sql`select i.id from (${candidates(start, round)}) i offset ${candidateCount(position, round) - 1}::integer limit 1`,
          [organization],
        ),
    }
  }
  const statements = checkCandidates(indexCandidates)
  if (isLinked) {
    const countCandidates = render(countCandidatesUpTo(indexCandidates, maxLinkedCandidates), [organization])
    return { ...statements, unlessFew: { countCandidates, max: maxLinkedCandidates, others: walkThenAll() } }
  }
  const all = allIndexes(indexCandidates)
  if (all.length === 1) return statements
  const counts = all.map(each => sql`(${countCandidatesUpTo(each, maxCountedCandidates)})`)
  const countCandidates = render(sql`select array[${commaSeparated(counts)}] as counts`, [organization])
  const choose = (counts: readonly number[]) => checkCandidates(all[counts.indexOf(Math.min(...counts))]!)
  return { ...statements, choice: { countCandidates, choose } }
}

/** Indexes with more candidates count as equal. */
const maxCountedCandidates = 10_000

/** Reads links and what they lead to once, by hashes. Without statistics, PostgreSQL would look up, or compare, row by row. */
export const hashSettings = statement(
  '',
  `select set_config('enable_nestloop', 'off', true), set_config('enable_mergejoin', 'off', true)`,
)

/** With more candidates, it takes less time to read the stack and its links once than to look up the links of each candidate. */
export const maxLinkedCandidates = 20_000

/** Builds the statement that counts the matching entities, with the number of the last change that the count includes. */
export function countStatement(condition: Condition, definitions: Definitions, stack_id: number): Query {
  const organization = new Parameter(definitions.organization_id)
  const { check, indexCandidates } = compileCondition(condition, definitions, stack_id, organization)
  if (check === always) return { ...countEntitiesSql, values: [organization.value, stack_id] }
  const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack_id}::integer`
  const ofCandidates = (
    ids: Fragment,
  ) => sql`select count(*) from (select distinct i.id from (${ids}) i(id) offset 0) candidate
    cross join lateral (select from entities e where ${own} and e.id = candidate.id and ${check} offset 0) m`
  const isLinked = needsLinked(condition)
  const ofStack = isLinked ? compileCondition(condition, definitions, stack_id, organization, true).check : check
  const whole = sql`select count(*) from entities e where ${own} and ${ofStack}`
  const count = () => {
    if (!indexCandidates) return whole
    const ids = allCandidates(indexCandidates)
    if (isLinked)
      return sql`with found as materialized (select i.id from (${ids}) i(id) limit ${maxLinkedCandidates + 1}::integer)
          select case when (select count(*) from found) <= ${maxLinkedCandidates}::integer
            then (${ofCandidates(sql`select f.id from found f`)}) else (${whole}) end`
    return indexCandidates.isExact
      ? sql`select count(*) from (select distinct i.id from (${ids}) i(id)) candidate`
      : ofCandidates(ids)
  }
  const counted = sql`select (${count()}) as count, h.sequence from change_heads h where h.organization_id = ${organization}`
  return { ...render(counted, [organization]), ...(isLinked && { settings: hashSettings }) }
}

/** An entity of a sorted page, with its sort term. */
export type SortedEntity = ReadEntity & { term: string }

/** A place in the order of a sort index. */
export type SortKey = { term: string; id: string }

/** A row of {@link SortedStatements.walk}. `id` is null if none was found, and `last_id` if the round reaches the end. */
export type WalkedRow = {
  id: string | null
  term: string
  row: string | null
  schema_version: number
  last_term: string | null
  last_id: string | null
}

/** A candidate that satisfies the condition, and what its sort term depends on. `id` is null if there is none. */
export type CandidateRow = { candidates: number; id: string | null; value: unknown }

export type SortedStatements = {
  /** Reads the first `limit` matches after a key among the entities of this round of the sort index. Returns at least one row. */
  walk(after: SortKey | undefined, limit: number, round: number): Query
  /** Reads the first `limit` matches after a key by the links of the whole stack, as rows of {@link SortedEntity}. Absent without linked entities. */
  all?: (after: SortKey | undefined, limit: number) => Query
  /** Of each index that gives candidates: reads all matches, if they are at most {@link maxSortedCandidates}. Returns at least one row. */
  candidates: readonly Query[]
  /** Reads those of these entities that match, in the order given, as rows of `ReadEntity`. */
  rows(ids: readonly string[]): Query
}

/** A page with more candidates walks the sort index, in which each entity on the way is checked. */
export const maxSortedCandidates = 10_000

type SortedSelection = {
  condition: Condition
  definitions: Definitions
  stack_id: number
  sort: Sort
  index: SortIndex
  position: Position
}

/**
 * Builds the statements that read a sorted page of matching entities. Each has only one plan: the walk reads a range of the primary
 * key of `terms`, and looks up each entity.
 */
export function sortedStatements(selection: SortedSelection): SortedStatements {
  const { condition, definitions, stack_id, sort, index, position } = selection
  const leading = leadingParameters(definitions, stack_id, position)
  const [organization, maxRowBytes, stack] = leading
  const { check, indexCandidates } = compileCondition(condition, definitions, stack_id, organization)
  const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack}::integer`
  const { row: rowText, parameters } =
    check === always ? rowOf(position) : rowOfProjection(position, definitions, stack_id)
  const row = constant(rowText)
  const shown = sql`case when octet_length(x.row) <= ${maxRowBytes}::integer then x.row end as row,
    (select h.schema_version from change_heads h where h.organization_id = ${organization}) as schema_version`
  const built = (fragment: Fragment) => render(fragment, [...leading, ...parameters])

  const walk = (after: SortKey | undefined, limit: number, round: number): Query => {
    const count = check === always ? limit : candidateCount(position, round)
    const keys = (position.direction === 'asc' ? keysAscending : keysDescending)(organization, index, after, count)
    const matching =
      check === always
        ? sql`select k.n, k.value, k.entity_id as id from keys k`
        : sql`select k.n, k.value, m.id from keys k cross join lateral (
            select e.id from entities e where ${own} and e.id = k.entity_id and ${check} offset 0
          ) m order by k.n limit ${limit}::integer`
    const query = built(sql`with keys as materialized (${keys}), matching as materialized (${matching})
      select x.id, x.term, ${shown}, l.value as last_term, l.entity_id as last_id
      from (values (1)) one
        left join (select k.value, k.entity_id from keys k where k.n = ${count}::integer) l on true
        left join (
          select m.n, m.value as term, e.id, e.row from matching m cross join lateral (
            select e.id, ${row} from entities e where ${own} and e.id = m.id offset 0
          ) e
        ) x on true
      order by x.n`)
    if (check !== always) return { ...query, settings: walkSettings }
    // Planning takes a millisecond, a third of the time of a page of 50.
    const name = `walk_${position.direction}${position.projection ? '_projected' : ''}`
    return { ...query, settings: walkSettings, name }
  }
  const all = (after: SortKey | undefined, limit: number): Query => {
    const ofAll = compileCondition(condition, definitions, stack_id, organization, true).check
    const [order, isAfter] = orderOfTerms(position.direction, after)
    const query = built(sql`select x.id, m.value as term, ${shown}
      from (
        select t.value, t.entity_id, row_number() over (order by ${order}) as n
        from terms t join entities e on e.id = t.entity_id
        where t.organization_id = ${organization} and t.index_id = ${index.id}::integer and ${isAfter} and ${own} and ${ofAll}
        order by ${order} limit ${limit}::integer
      ) m cross join lateral (select e.id, ${row} from entities e where ${own} and e.id = m.entity_id offset 0) x
      order by m.n`)
    return { ...query, settings: hashSettings }
  }
  const candidates = allIndexes(indexCandidates).map(each =>
    render(
      sql`with candidate as materialized (
        select i.id from (${allCandidates(each)}) i(id) limit ${maxSortedCandidates + 1}::integer
      )
      select n.candidates, m.id, m.value from (select count(*)::integer as candidates from candidate) n left join lateral (
        select m.id, m.value from (select distinct c.id from candidate c) c cross join lateral (
          select e.id, ${sortedPart(sort.field)} as value from entities e where ${own} and e.id = c.id and ${check} offset 0
        ) m where n.candidates <= ${maxSortedCandidates}::integer
      ) m on true`,
      [organization],
    ),
  )
  const rows = (ids: readonly string[]) =>
    built(sql`select x.id, ${shown} from unnest(${ids}::uuid[]) with ordinality as k(id, n) cross join lateral (
        select e.id, ${row} from entities e where ${own} and e.id = k.id and ${check} offset 0
      ) x order by k.n`)
  return { walk, candidates, rows, ...(needsLinked(condition) && { all }) }
}

/** The part of an entity e that its sort term depends on. */
function sortedPart(field: SortField): Fragment {
  if (field.kind === 'attribute')
    return sql`(select ${attributeParts} from (select e.attributes->${field.key}::text as v offset 0) a)`
  return partsOfColumns[field.column]!
}

const attributeParts = constant(attributePart('a.v'))
const partsOfColumns: Readonly<Record<string, Fragment>> = Object.fromEntries([
  ...['external_id', ...profileTexts].map(column => [column, constant(textPart(`e.${column}`))]),
  ...profileFlags.map(column => [column, constant(`e.${column}`)]),
  ...timeColumns.map(column => [column, constant(timeTerm(`e.${column}`))]),
])

const nil = '00000000-0000-0000-0000-000000000000'
const greatest = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

function keysAscending(
  organization: Parameter,
  { id: index_id }: SortIndex,
  after: SortKey | undefined,
  count: number,
) {
  const { term, id } = after ?? { term: '', id: nil }
  return sql`select t.value, t.entity_id, row_number() over (order by t.value, t.entity_id) as n from (
      select t.value, t.entity_id from terms t
      where t.organization_id = ${organization} and t.index_id = ${index_id}::integer
        and (t.value, t.entity_id) > (${term}::text, ${id}::uuid)
      order by t.value, t.entity_id limit ${count}::integer
    ) t`
}

/** The order of terms t, and whether one is after a key. */
function orderOfTerms(direction: 'asc' | 'desc', after: SortKey | undefined): [order: Fragment, isAfter: Fragment] {
  const isMissing = sql`t.value = ${noValueTerm}::text`
  const order = direction === 'asc' ? sql`t.value, t.entity_id` : sql`${isMissing}, t.value desc, t.entity_id desc`
  if (!after) return [order, always]
  const key = sql`(${after.term}::text, ${after.id}::uuid)`
  if (direction === 'asc') return [order, sql`(t.value, t.entity_id) > ${key}`]
  const isBefore = sql`(t.value, t.entity_id) < ${key}`
  return [order, after.term >= noValueTerm ? sql`(${isMissing} and ${isBefore})` : sql`(${isMissing} or ${isBefore})`]
}

/** Descending, entities without a value come last as well, so the keys are those of two ranges. */
function keysDescending(
  organization: Parameter,
  { id: index_id }: SortIndex,
  after: SortKey | undefined,
  count: number,
) {
  const isPastValues = after !== undefined && after.term >= noValueTerm
  const present = isPastValues ? { term: '', id: nil } : (after ?? { term: noValueTerm, id: nil })
  const own = sql`t.organization_id = ${organization} and t.index_id = ${index_id}::integer`
  return sql`select t.value, t.entity_id, row_number() over (order by t.is_missing, t.value desc, t.entity_id desc) as n from (
      with present as materialized (
        select t.value, t.entity_id from terms t
        where ${own} and (t.value, t.entity_id) < (${present.term}::text, ${present.id}::uuid)
        order by t.value desc, t.entity_id desc limit ${count}::integer
      ), missing as materialized (
        select t.value, t.entity_id from terms t
        where ${own} and t.value = ${noValueTerm}::text and t.entity_id < ${isPastValues ? after.id : greatest}::uuid
        order by t.entity_id desc limit greatest(${count}::integer - (select count(*) from present), 0)
      )
      select p.value, p.entity_id, false as is_missing from present p
      union all select m.value, m.entity_id, true from missing m
    ) t`
}
