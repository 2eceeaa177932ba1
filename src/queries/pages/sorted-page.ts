import {
  compareByCodePoint,
  noValueTerm,
  type SortField,
  sortTermOf,
  timeColumns,
} from '../../entities/indexes/sort-field.ts'
import { beginSortIndex } from '../../entities/indexes/sort-index.ts'
import { attributePart, textPart, timeTerm } from '../../entities/indexes/sort-index-sql.ts'
import { type Count, type Position, sizeToRead } from '../../entities/read/pagination.ts'
import type { SortIndex } from '../../organizations/definitions.ts'
import { yieldIfDue } from '../../process/event-loop.ts'
import type { Signal } from '../../process/signal.ts'
import { firstId } from '../../values/formats.ts'
import { profileFlags, profileTexts } from '../../values/profile-fields.ts'
import { parseSort, type Sort } from '../grammar/sort.ts'
import { compileCondition, needsLinked } from '../plan/compile.ts'
import { distinctCandidates } from '../plan/condition.ts'
import { always, constant, type Fragment, type Parameter, type Rendered, sql, unionAll } from '../plan/fragment.ts'
import type { Reading } from '../plan/reading.ts'
import type { SortBody } from '../schema.ts'
import {
  countLinked,
  countMatches,
  countMembers,
  countOf,
  fewestOf,
  hashSettings,
  indexesOf,
  maxFewCandidates,
} from './count.ts'
import type { ReadPage, Selection } from './id-page.ts'
import { shownRows } from './shown-rows.ts'

/** A sorted page as read, with the sort term of its last entity. */
export type SortedPage = ReadPage & { last_term: string | undefined }

/** The number of index keys whose entities a round checks. */
const keysOfRound = (round: number) => Math.min(500 * 8 ** round, 100_000)
/** After this many rounds, some 4,500 entities, kith knows the share that satisfies a condition on linked entities. */
const roundsBeforeAll = 2
/** The number of entities that one statement reads from a stack without an index. */
const scannedEntities = 5_000

/**
 * Reads a page of matching entities in the order of a field. The first request for a field creates its index, and a
 * background task fills it. Until then, kith sorts the page from the rows. Throws a Fault of 400 if the field cannot
 * sort.
 */
export async function readSortedPage(
  reading: Reading,
  body: SortBody,
  selection: Selection,
  signal?: Signal,
): Promise<SortedPage> {
  const { definitions } = reading
  const { stack_id } = selection
  const sort = await reading.check(() => parseSort(body, definitions, stack_id, reading.caller))
  const index = definitions.sort_indexes.get(stack_id)?.get(sort.name)
  if (!index) await beginSortIndex(reading.context, stack_id, sort.name, signal)
  const pages = buildPages(reading, sort, index, selection)
  const counted = await pages.countLinked?.()
  const keys = (await readFewKeys(pages)) ?? (index?.ready ? undefined : await readAllKeys(pages))
  const page = keys ? await showKeys(pages, keys) : await walk(pages)
  return { ...page, counted: counted ?? pages.counted() }
}

type Row = { schema_version: number; rows: string | null; found: number } & Partial<Count>
/**
 * `last_term` is the sort term of the last entity of the page. `boundary` is the last checked key if the page is not
 * full.
 */
type WalkedRow = Row & { last_term: string | null; boundary_term: string | null; boundary_id: string | null }
/** `last_id` is the last entity of the page. */
type NamedRow = Row & { last_id: string | null }
/** A matching entity, and the values that its sort term depends on. `id` is null if there is none. */
type ValueRow = { schema_version: number; is_few: boolean; id: string | null; value: unknown } & Partial<Count>

type Pages = ReturnType<typeof buildPages>

function buildPages(reading: Reading, sort: Sort, index: SortIndex | undefined, selection: Selection) {
  const { condition, stack_id, position, isCounted } = selection
  const { definitions } = reading
  const shown = shownRows(definitions, stack_id, position)
  const { organization, own, row, schemaVersion } = shown
  const ofOne = compileCondition(condition, definitions, stack_id, organization)
  const { check } = ofOne
  const isLinked = needsLinked(condition)
  const ofAll = isLinked ? compileCondition(condition, definitions, stack_id, organization, true).check : undefined
  let counted: Count | undefined
  /** Runs a statement. Only the first one also counts. */
  let counting = isCounted && !isLinked ? countMembers(countMatches(ofOne, own), organization) : sql``
  const run = async <R extends Row | ValueRow>(
    build: (counting: Fragment) => Fragment,
    render: (statement: Fragment) => Rendered = shown.render,
  ): Promise<[R, ...R[]]> => {
    const rows = await reading.run<R>(render(build(counting)))
    counting = sql``
    counted ??= countOf(rows[0])
    return rows
  }
  const inOrder = orderOfKeys(position.direction, sql`x.term`, sql`x.id`)
  /** Shows the entities of a table that has `id` and the columns of `order`, and adds members to each row. */
  const show =
    (matching: Fragment, members: Fragment, { tables = sql``, order = inOrder } = {}) =>
    (counted: Fragment) =>
      sql`${tables} select string_agg(${shown.shown}, E'\\n' order by ${order}) as rows, count(*)::integer as found, ${members},
      ${schemaVersion} as schema_version${counted}
    from (
      select m.*, e.row from ${matching} m cross join lateral (
        select ${row} from entities e where ${own} and e.id = m.id offset 0
      ) e
    ) x`
  /**
   * The member of the last entity that the page shows. The statement reads one more, to find whether there are more.
   */
  const lastOf = (member: Fragment, limit: number, order = inOrder) =>
    sql`(array_agg(${member} order by ${order}))[least(${limit - 1}::integer, count(*)::integer)]`
  const lastTerm = (limit: number) => sql`${lastOf(sql`x.term`, limit)} as last_term`
  const atEnd = sql`null::text as boundary_term, null::uuid as boundary_id`

  const indexes = indexesOf(ofOne)
  const values = sql`e.id, ${sortedPart(sort.field)} as value`
  return {
    sort,
    position,
    counted: () => counted,
    countLinked: isCounted && ofAll ? () => reading.runOnePlanned<Count>(countLinked(ofOne, ofAll, shown)) : undefined,
    hasIndexes: indexes.length > 0,
    /**
     * Selects the matches among the candidates of the index with the fewest, if they are few. Returns at least one row.
     */
    readFew: () => {
      const isChosen = (number: number) => sql`(select c.way from chosen c) = ${number}::integer`
      const matches = indexes.map(
        (each, number) => sql`select v.id, v.value from (${distinctCandidates(each)} where ${isChosen(number + 1)}) i
          cross join lateral (select ${values} from entities e where ${own} and e.id = i.id and ${each.rest} offset 0) v`,
      )
      return run<ValueRow>(
        counted => sql`with chosen as materialized (select ${fewestOf(indexes, 0)} as way)
          select c.way <> 0 as is_few, v.id, v.value, ${schemaVersion} as schema_version${counted}
          from chosen c left join (${unionAll(matches)}) v on true`,
        shown.renderPlain,
      )
    },
    /**
     * Selects the matches among the next entities of the stack. Returns at least one row. `last_id` is the last checked
     * entity, if there are more.
     */
    scan: (after: string) =>
      run<ValueRow & { last_id: string | null }>(
        counted => sql`with portion as materialized (
            select e.id from entities e where ${own} and e.id > ${after}::uuid order by e.id limit ${scannedEntities}::integer
          )
          select true as is_few, v.id, v.value, o.last_id, ${schemaVersion} as schema_version${counted}
          from (select (select p.id from portion p offset ${scannedEntities - 1}::integer limit 1) as last_id) o
            left join (
              select v.id, v.value from portion p
                cross join lateral (select ${values} from entities e where ${own} and e.id = p.id and ${check} offset 0) v
            ) v on true`,
        shown.renderPlain,
      ),
    /** Shows the entities with these ids that still match. */
    showIds: async (ids: readonly string[], limit: number) => {
      const matching = sql`(
        select m.id, k.n from unnest(${ids}::uuid[]) with ordinality as k(id, n) cross join lateral (
          select e.id from entities e where ${own} and e.id = k.id and ${check} offset 0
        ) m
      )`
      const order = sql`x.n`
      return (await run<NamedRow>(show(matching, sql`${lastOf(sql`x.id`, limit, order)} as last_id`, { order })))[0]
    },
    /** Shows the first matches after a key among the next keys of the index. */
    walk: async (after: SortKey | undefined, limit: number, round: number) => {
      const keysOf = position.direction === 'asc' ? keysAscending : keysDescending
      // PostgreSQL takes 0.39 ms for a page of 50 this way, and 0.48 ms with the tables of the other branch.
      if (check === always) {
        const keys = sql`(${keysOf(organization, index!, after, limit)})`
        return (await run<WalkedRow>(show(keys, sql`${lastTerm(limit)}, ${atEnd}`)))[0]
      }
      const count = keysOfRound(round)
      const tables = sql`with keys as materialized (${keysOf(organization, index!, after, count)}),
        matching as materialized (
          select k.term, m.id from keys k cross join lateral (
            select e.id from entities e where ${own} and e.id = k.id and ${check} offset 0
          ) m limit ${limit}::integer
        )`
      const boundary = (member: Fragment) => sql`case when (select count(*) from matching) < ${limit}::integer then (
        select ${member} from keys k offset ${count - 1}::integer limit 1
      ) end`
      const members = sql`${lastTerm(limit)},
        ${boundary(sql`k.term`)} as boundary_term, ${boundary(sql`k.id`)} as boundary_id`
      return (await run<WalkedRow>(show(sql`matching`, members, { tables })))[0]
    },
    /** Shows the first matches after a key by the links of the whole stack. */
    walkLinked:
      ofAll &&
      ((after: SortKey | undefined, limit: number) => {
        const matching = sql`(
          select t.entity_id as id, t.value as term
          from terms t join entities e on e.id = t.entity_id
          where t.organization_id = ${organization} and t.index_id = ${index!.id}::integer
            and ${isAfterKey(position.direction, after)} and ${own} and ${ofAll}
          order by ${orderOfKeys(position.direction, sql`t.value`, sql`t.entity_id`)} limit ${limit}::integer
        )`
        return reading.runOnePlanned<WalkedRow>({
          ...shown.render(show(matching, sql`${lastTerm(limit)}, ${atEnd}`)(sql``)),
          settings: hashSettings,
        })
      }),
  }
}

const keyAfter = ({ after_id, after_term }: Position): SortKey | undefined =>
  after_id === undefined || after_term === undefined ? undefined : { id: after_id, term: after_term }

type FoundRows = { rows: string; last_term: string | undefined }

/**
 * Reads the sort index in order, in rounds, and checks each entity. If the next round would not fill the page, a
 * condition on linked entities is checked for the whole stack at once.
 */
async function walk({ position, walk: walkKeys, walkLinked }: Pages): Promise<FoundRows> {
  const rows: string[] = []
  let last_term: string | undefined
  let found = 0
  let after = keyAfter(position)
  for (let round = 0; ; round += 1) {
    const limit = sizeToRead(position) - found
    const isRare = round >= roundsBeforeAll && found * 8 < sizeToRead(position)
    const row = await (walkLinked && isRare ? walkLinked(after, limit) : walkKeys(after, limit, round))
    if (row.rows !== null) rows.push(row.rows)
    last_term = row.last_term ?? last_term
    found += row.found
    if (found >= sizeToRead(position) || row.boundary_id === null) return { rows: rows.join('\n'), last_term }
    after = { id: row.boundary_id, term: row.boundary_term! }
  }
}

/** Returns the keys of the matches in the order of the page, if an index gives few candidates. */
async function readFewKeys(pages: Pages): Promise<SortKey[] | undefined> {
  if (!pages.hasIndexes) return undefined
  const rows = await pages.readFew()
  if (!rows[0].is_few) return undefined
  const first = firstKeys(pages, maxFewCandidates)
  first.add(rows)
  return first.keys()
}

/** Returns the first keys of all matches of the stack. */
async function readAllKeys(pages: Pages): Promise<SortKey[]> {
  const first = firstKeys(pages, 2 * sizeToRead(pages.position))
  for (let after: string | null = firstId; after !== null; ) {
    const rows: [ValueRow & { last_id: string | null }, ...ValueRow[]] = await pages.scan(after)
    first.add(rows)
    after = rows[0].last_id
    await yieldIfDue()
  }
  return first.keys()
}

/** Collects the first keys after the position of a page. */
function firstKeys({ sort, position }: Pages, max: number) {
  const after = keyAfter(position)
  const compare = position.direction === 'asc' ? compareAscending : compareDescending
  let found: SortKey[] = []
  const keys = () => found.sort(compare)
  const add = (rows: readonly ValueRow[]) => {
    for (const { id, value } of rows) {
      if (id === null) continue
      const { field, type } = sort
      const key = { id, term: field.kind === 'time' ? String(value) : sortTermOf(type, value) }
      if (!after || compare(key, after) > 0) found.push(key)
    }
    if (found.length > max) found = keys().slice(0, max)
  }
  return { add, keys }
}

/**
 * Shows the entities of these keys. If a concurrent write removes an entity from the matches, the page takes the next
 * ones instead.
 */
async function showKeys({ position, showIds }: Pages, keys: readonly SortKey[]): Promise<FoundRows> {
  const terms = new Map(keys.map(({ id, term }) => [id, term]))
  const rows: string[] = []
  let last_term: string | undefined
  let found = 0
  for (let next = 0; next < keys.length && found < sizeToRead(position); ) {
    const limit = sizeToRead(position) - found
    const ids = keys.slice(next, next + limit).map(({ id }) => id)
    next += ids.length
    const row = await showIds(ids, limit)
    if (row.rows !== null) rows.push(row.rows)
    found += row.found
    if (row.last_id !== null) last_term = terms.get(row.last_id)
  }
  return { rows: rows.join('\n'), last_term }
}

const compareAscending = (one: SortKey, other: SortKey): number =>
  compareByCodePoint(one.term, other.term) || (one.id < other.id ? -1 : Number(one.id > other.id))

/** Orders values backwards, then entities without a value. Equal ones have the later identifier first. */
const compareDescending = (one: SortKey, other: SortKey): number =>
  Number(one.term >= noValueTerm) - Number(other.term >= noValueTerm) || compareAscending(other, one)

/** A position in the order of a sort index. */
type SortKey = { term: string; id: string }

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

const greatest = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The next `count` keys of an index, in the order of the index. */
function keysAscending(
  organization: Parameter,
  { id: index_id }: SortIndex,
  after: SortKey | undefined,
  count: number,
) {
  const { term, id } = after ?? { term: '', id: firstId }
  return sql`select t.value as term, t.entity_id as id from terms t
    where t.organization_id = ${organization} and t.index_id = ${index_id}::integer
      and (t.value, t.entity_id) > (${term}::text, ${id}::uuid)
    order by t.value, t.entity_id limit ${count}::integer`
}

/** The order of keys. Keys without a value come last in both directions. */
const orderOfKeys = (direction: 'asc' | 'desc', term: Fragment, id: Fragment): Fragment =>
  direction === 'asc' ? sql`${term}, ${id}` : sql`${term} = ${noValueTerm}::text, ${term} desc, ${id} desc`

/** The condition that a term t is after a key. */
function isAfterKey(direction: 'asc' | 'desc', after: SortKey | undefined): Fragment {
  if (!after) return always
  const key = sql`(${after.term}::text, ${after.id}::uuid)`
  if (direction === 'asc') return sql`(t.value, t.entity_id) > ${key}`
  const isMissing = sql`t.value = ${noValueTerm}::text`
  const isBefore = sql`(t.value, t.entity_id) < ${key}`
  return after.term >= noValueTerm ? sql`(${isMissing} and ${isBefore})` : sql`(${isMissing} or ${isBefore})`
}

/** Like {@link keysAscending}, but in two ranges, because entities without a value come after the others. */
function keysDescending(
  organization: Parameter,
  { id: index_id }: SortIndex,
  after: SortKey | undefined,
  count: number,
) {
  const isPastValues = after !== undefined && after.term >= noValueTerm
  const present = isPastValues ? { term: '', id: firstId } : (after ?? { term: noValueTerm, id: firstId })
  const own = sql`t.organization_id = ${organization} and t.index_id = ${index_id}::integer`
  return sql`with present as materialized (
      select t.value, t.entity_id from terms t
      where ${own} and (t.value, t.entity_id) < (${present.term}::text, ${present.id}::uuid)
      order by t.value desc, t.entity_id desc limit ${count}::integer
    ), missing as materialized (
      select t.value, t.entity_id from terms t
      where ${own} and t.value = ${noValueTerm}::text and t.entity_id < ${isPastValues ? after.id : greatest}::uuid
      order by t.entity_id desc limit greatest(${count}::integer - (select count(*) from present), 0)
    )
    select p.value as term, p.entity_id as id from present p union all select m.value, m.entity_id from missing m`
}
