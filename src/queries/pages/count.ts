import { statement } from '../../db/db.ts'
import type { Count } from '../../entities/read/pagination.ts'
import { type Candidates, type CompiledCondition, countUpTo, distinctCandidates } from '../plan/condition.ts'
import { always, commaSeparated, type Fragment, type Parameter, sql, unionAll } from '../plan/fragment.ts'
import type { PlannedQuery } from '../plan/reading.ts'
import type { ShownRows } from './shown-rows.ts'

/** Indexes with more candidates count as equal. Counting up to this number takes a millisecond. */
export const maxFewCandidates = 10_000

/** A statement chooses among at most this many indexes, those that usually give the fewest candidates. */
const maxIndexes = 4

/** The indexes that a statement chooses among. An identifier gives so few candidates that it is the only choice. */
export function indexesOf({ candidates }: CompiledCondition): readonly Candidates[] {
  const [best] = candidates
  return best?.rank === 0 ? [best] : candidates.slice(0, maxIndexes)
}

/**
 * The number, from 1, of the index with the fewest candidates, or `fallback` if each has more than
 * {@link maxFewCandidates}.
 */
export function fewestOf(indexes: readonly Candidates[], fallback: number): Fragment {
  const counts = indexes.map((each, index) => sql`(${index + 1}::integer, (${countUpTo(each, maxFewCandidates)}))`)
  return sql`(select case when min(q.n) > ${maxFewCandidates}::integer then ${fallback}::integer
    else (array_agg(q.way order by q.n, q.way))[1] end from (values ${commaSeparated(counts)}) q(way, n))`
}

/** Counts the matches in a stack. `own` is the condition that a row e belongs to the stack. */
export function countMatches(condition: CompiledCondition, own: Fragment): Fragment {
  const { check, exact } = condition
  const indexes = indexesOf(condition)
  const of = (candidates: Candidates) => {
    const ids = distinctCandidates(candidates)
    const { rest } = candidates
    if (rest === always) return sql`select count(*) as n from (${ids}) i`
    return sql`select count(*) as n from (${ids}) i cross join lateral (
      select from entities e where ${own} and e.id = i.id and ${rest} offset 0
    ) m`
  }
  const [first, second] = indexes
  if (!first) return sql`(select count(*) from entities e where ${own} and ${check})`
  if (!second) return sql`(${of(first)})`
  // If each index has many candidates, this counts the ids that all have in common, or else checks those of the first
  // index.
  const common = exact?.map(distinctCandidates).reduce((before, next) => sql`${before} intersect ${next}`)
  const ofMany = common ? sql`select count(*) as n from (${common}) i` : of(first)
  const ways = [ofMany, ...indexes.map(of)].map(
    (way, number) => sql`select w.n from (${way}) w where (select c.way from counted_by c) = ${number}::integer`,
  )
  return sql`(with counted_by as materialized (select ${fewestOf(indexes, 0)} as way) select c.n from (${unionAll(ways)}) c)`
}

/**
 * Reads the links of a whole stack and the linked entities once, and joins them by hashes. PostgreSQL would otherwise
 * look them up row by row, which takes minutes for a million people.
 */
export const hashSettings = statement(
  '',
  `select set_config('enable_nestloop', 'off', true), set_config('enable_mergejoin', 'off', true)`,
)

/**
 * Counts the entities that satisfy conditions on linked ones, among few candidates or in the stack. `ofAll` checks all
 * rows e at once.
 */
export function countLinked(
  { candidates: [best] }: CompiledCondition,
  ofAll: Fragment,
  { own, organization, renderPlain }: ShownRows,
): PlannedQuery {
  const whole = sql`select count(*) from entities e where ${own} and ${ofAll}`
  const count = best
    ? sql`with found as materialized (${distinctCandidates(best)} limit ${maxFewCandidates + 1}::integer)
        select case when (select count(*) from found) <= ${maxFewCandidates}::integer then (
          select count(*) from found f cross join lateral (
            select from entities e where ${own} and e.id = f.id and ${best.rest} offset 0
          ) m
        ) else (${whole}) end`
    : whole
  const statement = sql`select (${count}) as count, h.sequence from change_heads h where h.organization_id = ${organization}`
  return { ...renderPlain(statement), settings: hashSettings }
}

/**
 * The members of a statement that counts beside its page: the count, and the number of the last change that it
 * includes.
 */
export const countMembers = (count: Fragment, organization: Parameter): Fragment =>
  sql`, ${count} as count, (select h.sequence from change_heads h where h.organization_id = ${organization}) as sequence`

/** The count of a row with {@link countMembers}. */
export const countOf = ({ count, sequence }: Partial<Count>): Count | undefined =>
  count === undefined || sequence === undefined ? undefined : { count, sequence }
