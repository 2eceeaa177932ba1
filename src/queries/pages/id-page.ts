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
// of the primary key needs neither a sort nor a bitmap. For 300,000 people, a page of three conditions takes 7 ms as a
// walk, and 153 ms with a sort and a bitmap.
const walkSettings = statement(
  '',
  `select set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)`,
)

/** The condition of a page, its stack, and the start of the page in the order. */
export type Selection = {
  condition: Condition
  stack_id: number
  position: Position
  isCounted?: boolean | undefined
}

/** A page as read: the texts of its rows, separated by line feeds, and one row more if another page follows. */
export type ReadPage = { rows: string; counted: Count | undefined }

/**
 * The number of entities to check in order before sorting the candidates of an index with many. Checking them takes 1
 * to 2 ms.
 */
const walkedEntities = 2_000

/**
 * The number of entities whose links are looked up one by one, which takes 0.3 to 1 s. After that, the links of the
 * whole stack are read at once.
 */
export const linkedEntities = 50_000

/**
 * The number of candidates that a round sorts and checks. Usually most pass the rest of the filter. If few do, each
 * later round takes more.
 */
const sortedCandidates = (round: number) => Math.min(1_000 * 8 ** round, 100_000)

type Row = {
  schema_version: number
  rows: string | null
  found: number
  /** The last checked entity, if the page is not full and unchecked entities are left. */
  boundary: string | null
  /** How the entities to check were found: the number of the index, or 0 for a walk in their order. */
  way: number
} & Partial<Count>

/** The start of a round, and the way to find its entities. With null, the statement chooses the way. */
type Place = { start: string; way: number | null; round: number; limit: number }

/**
 * Reads a page of matching entities in order of their ids, in rounds of one statement each. Usually the first round
 * fills the page.
 */
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
    // The round after a walk that did not fill the page reads the candidates of an index.
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
    // Without an index, this shows the rows where it checks them instead of looking them up again, which cuts the time
    // of a list page by a third.
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

/** The tables before a page, and the start of the next round. The table `matching` has the first ids that pass. */
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

/** Whether a single select has all candidates in order, so that PostgreSQL reads them one by one. */
const isLazy = ({ isOrdered, selects }: Candidates) => isOrdered === true && selects.length === 1

/** The ids of a select whose rows pass a check, in the order of the select. */
const checked = (ids: Fragment, check: Fragment, own: Fragment) =>
  check === always
    ? ids
    : sql`select m.id from (${ids}) p cross join lateral (
        select e.id from entities e where ${own} and e.id = p.id and ${check} offset 0
      ) m`

/**
 * Like {@link matching}, but the statement itself counts the candidates of each index, and reads those of the index
 * with the fewest. PostgreSQL runs only the chosen branch. If each index has many candidates, the statement reads an
 * index with ordered ids, or walks the first entities of the stack.
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

/**
 * The ids of candidates in order. An index with ordered ids gives them one by one, and any other index gives the first
 * ones of the round.
 */
function candidateWay(candidates: Candidates, isChosen: Fragment, { order, round, isAfter }: Walk) {
  const first = (ids: Fragment) => sql`${ids} where ${isAfter(sql`i.id`)} and ${isChosen} order by i.id ${order}`
  const { selects, isOrdered } = candidates
  if (isLazy(candidates)) return { ids: first(distinctCandidates(candidates)), size: undefined }
  const size = sortedCandidates(round)
  // An index with ordered ids gives the first of half a million in a millisecond. Reading all of them would need a
  // sort.
  const each = isOrdered
    ? unionAll(selects.map(select => sql`(${first(sql`select i.id from (${select}) i(id)`)} limit ${size}::integer)`))
    : // Without the fence, PostgreSQL moves the order into the select, and walks the stack instead of the few candidates.
      sql`select f.id from (${allCandidates(candidates)}) f(id) offset 0`
  return { ids: sql`${first(distinctCandidates({ ...candidates, selects: [each] }))} limit ${size}::integer`, size }
}
