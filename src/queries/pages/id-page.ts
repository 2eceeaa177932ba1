import { statement } from '../../db/db.ts'
import { type Count, type Position, sizeToRead, startOf } from '../../entities/read/pagination.ts'
import type { Condition } from '../grammar/grammar.ts'
import { compileCondition, needsLinked } from '../plan/compile.ts'
import { allCandidates, type Candidates, type CompiledCondition, distinctCandidates } from '../plan/condition.ts'
import { always, type Fragment, sql, unionAll } from '../plan/fragment.ts'
import type { Reading } from '../plan/reading.ts'
import { countLinked, countMatches, countMembers, countOf, fewestOf, hashSettings, indexesOf } from './count.ts'
import { type ShownRows, shownRows } from './shown-rows.ts'

// PostgreSQL expects almost no match for many conditions, and would read and sort the whole stack. A walk in the order
// of the primary key needs neither a sort nor a bitmap: for 300,000 people, a page of three conditions takes 7 ms this
// way, and 153 ms with them.
const walkSettings = statement(
  '',
  `select set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)`,
)

/** The condition of a page, the stack that it reads, and where in the order it begins. */
export type Selection = {
  condition: Condition
  stack_id: number
  position: Position
  isCounted?: boolean | undefined
}

/** A page as it is read: the texts of its rows, separated by line feeds, with one row more if there are more. */
export type ReadPage = { rows: string; counted: Count | undefined }

/** Entities that are checked in order before the candidates of an index with many are sorted. It takes a millisecond or two. */
const walkedEntities = 2_000

/** Entities whose links are looked up one by one, before those of the whole stack are read at once: a third of a second to a second. */
export const linkedEntities = 50_000

/** Candidates that a round sorts and checks. Most pass the rest of the filter. If few do, each later round takes more. */
const sortedCandidates = (round: number) => Math.min(1_000 * 8 ** round, 100_000)

type Row = {
  schema_version: number
  rows: string | null
  found: number
  /** The last entity that was checked, if neither the page is full nor all entities were checked. */
  boundary: string | null
  /** How the entities to check were found: by the index with this number, or by their order if it is 0. */
  way: number
} & Partial<Count>

/** Where a round begins, and how it finds its entities: null if the statement is to choose. */
type Place = { start: string; way: number | null; round: number; limit: number }

/** Reads a page of matching entities in order of their ids, in rounds of a statement each. Usually one fills the page. */
export async function readIdPage(reading: Reading, selection: Selection): Promise<ReadPage> {
  const { position } = selection
  const { page, pageOfStack, count } = buildStatements(reading, selection)
  const rows: string[] = []
  let counted = count && (await count())
  let found = 0
  let start: string | null = startOf(position)
  let way: number | null = null
  for (let round = 0; start !== null; round += 1) {
    const place: Place = { start, way, round, limit: sizeToRead(position) - found }
    const row: Row = await (pageOfStack && round > 0 ? pageOfStack(place) : page(place))
    if (row.rows !== null) rows.push(row.rows)
    found += row.found
    counted ??= countOf(row)
    start = found < sizeToRead(position) ? row.boundary : null
    // A walk that did not fill the page is followed by the candidates of an index.
    way = row.way || 1
  }
  return { rows: rows.join('\n'), counted }
}

function buildStatements(reading: Reading, { condition, stack_id, position, isCounted }: Selection) {
  const { definitions } = reading
  const shown = shownRows(definitions, stack_id, position)
  const { organization, own, order, row, schemaVersion } = shown
  const ofOne = compileCondition(condition, definitions, stack_id, organization)
  const isLinked = needsLinked(condition)
  const isAfter = (id: Fragment, { start }: Place) => shown.isAfter(id, start)
  const build = ({ tables, boundary, way }: Matching, counting: Fragment, rows = shown.ofMatching) => {
    const members = sql`${boundary} as boundary, ${way} as way, ${schemaVersion} as schema_version${counting}`
    return shown.render(sql`${tables}${shown.page(rows, members, order)}`)
  }
  const page = async (place: Place) => {
    const counting =
      isCounted && !isLinked && place.round === 0 ? countMembers(countMatches(ofOne, own), organization) : sql``
    const walk = { ...place, own, order, isLinked, isAfter: (id: Fragment) => isAfter(id, place) }
    if (isLinked || ofOne.candidates.length > 0)
      return (await reading.run<Row>(build(matching(ofOne, walk), counting)))[0]
    // Without an index, the rows are read where they are checked, and not looked up again: a page of a list takes two thirds of the time.
    const rows = sql`(select e.id, ${row} from entities e where ${own} and ${isAfter(sql`e.id`, place)} and ${ofOne.check}
      order by e.id ${order} limit ${place.limit}::integer)`
    const query = build(atEnd, counting, rows)
    if (ofOne.check === always) return (await reading.run<Row>(query))[0]
    return reading.runOnePlanned<Row>({ ...query, settings: walkSettings })
  }
  if (!isLinked) return { page, pageOfStack: undefined, count: undefined }
  const ofAll = compileCondition(condition, definitions, stack_id, organization, true).check
  return {
    page,
    // Reads the page by the links of the whole stack.
    pageOfStack: (place: Place) => {
      const tables = sql`with matching as materialized (
        select m.id from (select e.id from entities e where ${own} and ${isAfter(sql`e.id`, place)} and ${ofAll} offset 0) m
        order by m.id ${order} limit ${place.limit}::integer
      )`
      return reading.runOnePlanned<Row>({ ...build({ ...atEnd, tables }, sql``), settings: hashSettings })
    },
    count: isCounted ? () => reading.runOnePlanned<Count>(countLinked(ofOne, ofAll, shown)) : undefined,
  }
}

/** The tables before a page, of which `matching` has the first ids that pass, and where the next round goes on. */
type Matching = { tables: Fragment; boundary: Fragment; way: Fragment }
const atEnd: Matching = { tables: sql``, boundary: sql`null::uuid`, way: sql`1::integer` }

type Walk = Place & Pick<ShownRows, 'own'> & { order: Fragment; isLinked: boolean; isAfter: (id: Fragment) => Fragment }

function matching(condition: CompiledCondition, walk: Walk): Matching {
  const { own, order, limit, isAfter } = walk
  const indexes = indexesOf(condition)
  const [best, ...others] = indexes
  const isInOrder = best && (best.rank === 0 || (isLazy(best) && others.length === 0))
  if (!isInOrder) return chosenMatching(condition, indexes, walk)
  const ids = checked(
    sql`${distinctCandidates(best)} where ${isAfter(sql`i.id`)} order by i.id ${order}`,
    best.rest,
    own,
  )
  return { ...atEnd, tables: sql`with matching as materialized (${ids} limit ${limit}::integer)` }
}

/** Whether one select has all candidates in order, so that they are read one by one. */
const isLazy = ({ isOrdered, selects }: Candidates) => isOrdered === true && selects.length === 1

/** The ids of a select, in its order, whose rows pass a check. */
const checked = (ids: Fragment, check: Fragment, own: Fragment) =>
  check === always
    ? ids
    : sql`select m.id from (${ids}) p cross join lateral (
        select e.id from entities e where ${own} and e.id = p.id and ${check} offset 0
      ) m`

/**
 * As {@link matching}, where the statement itself counts the candidates of each index, and reads those of the fewest. Only the part of the
 * way that it chooses is run. With many candidates of each index, it reads an index that has its ids in order, or walks the first
 * entities of the stack.
 */
function chosenMatching(condition: CompiledCondition, indexes: readonly Candidates[], walk: Walk): Matching {
  const { own, order, limit, way, isLinked, isAfter } = walk
  const walked = isLinked ? linkedEntities : walkedEntities
  const isChosen = (number: number) => sql`(select c.way from chosen c) = ${number}::integer`
  const ways = [
    {
      ids: sql`select e.id from entities e where ${own} and ${isAfter(sql`e.id`)} and ${isChosen(0)}
        order by e.id ${order} limit ${walked}::integer`,
      check: condition.check,
      size: walked as number | undefined,
    },
    ...indexes.map((candidates, index) => ({
      ...candidateWay(candidates, isChosen(index + 1), walk),
      check: candidates.rest,
    })),
  ]
  const passing = ways.map(({ check }, number) =>
    checked(sql`select p.id from portion p where ${isChosen(number)}`, check, own),
  )
  const boundaries = ways.flatMap(({ size }, number) =>
    size === undefined
      ? []
      : [sql`(select p.id from portion p where ${isChosen(number)} offset ${size - 1}::integer limit 1)`],
  )
  const ordered = indexes.findIndex(isLazy) + 1
  const fewest = indexes.length === 0 ? sql`0` : fewestOf(indexes, ordered)
  return {
    tables: sql`with chosen as materialized (select coalesce(${way}::integer, ${fewest}) as way),
      portion(id) as materialized (${unionAll(ways.map(({ ids }) => sql`(${ids})`))}),
      matching as materialized (select u.id from (${unionAll(passing)}) u(id) limit ${limit}::integer)`,
    boundary: sql`case when (select count(*) from matching) < ${limit}::integer then (
      select b.id from (${unionAll(boundaries)}) b
    ) end`,
    way: sql`(select c.way from chosen c)`,
  }
}

/** The ids of candidates in order: one by one from an index that has them so, else the first ones of the round. */
function candidateWay(candidates: Candidates, isChosen: Fragment, { order, round, isAfter }: Walk) {
  const first = (ids: Fragment) => sql`${ids} where ${isAfter(sql`i.id`)} and ${isChosen} order by i.id ${order}`
  const { selects, isOrdered } = candidates
  if (isLazy(candidates)) return { ids: first(distinctCandidates(candidates)), size: undefined }
  const size = sortedCandidates(round)
  // An index with its ids in order gives the first of half a million in a millisecond. All of them together would be sorted.
  const each = isOrdered
    ? unionAll(selects.map(select => sql`(${first(sql`select i.id from (${select}) i(id)`)} limit ${size}::integer)`))
    : // Without the fence, PostgreSQL moves the order into the select, and walks the stack for the few candidates that were counted.
      sql`select f.id from (${allCandidates(candidates)}) f(id) offset 0`
  return { ids: sql`${first(distinctCandidates({ ...candidates, selects: [each] }))} limit ${size}::integer`, size }
}
