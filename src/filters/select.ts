import { maxRowBytesOf, type Position, sizeToRead } from '../entities/pagination.ts'
import { readRows } from '../entities/read-sql.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { compileCondition } from './compile.ts'
import { Parameter, render, sql } from './fragment.ts'
import type { Condition } from './grammar.ts'

/** A statement whose text holds constants and `$n` alone. */
export type Query = { text: string; values: unknown[] }

export type MatchingStatements = {
  /** Of those behind `start`, the first `wanted` that match, among the candidates of this round: rows of `ReadEntity`. */
  rows(start: string, wanted: number, round: number): Query
  /** The last candidate of this round; no row where the round has seen them all. Absent where every entity is one. */
  boundary?(start: string, round: number): Query
}

// Most of what an index finds passes the rest of the filter; where it does not, later rounds take more at once.
const growth = 8
const mostCandidates = 100_000
const candidatesOf = (position: Position, round: number) =>
  Math.min(2 * sizeToRead(position) * growth ** round, mostCandidates)

/**
 * The statements that read a page of those who match. Without an index the stack is read in order and checked; with
 * one its ids come first, in order and so many at a time, and only they are looked up: which of the two it is never
 * depends on what the planner believes.
 */
export function matchingStatements(
  condition: Condition,
  definitions: Definitions,
  stack_id: number,
  position: Position,
): MatchingStatements {
  const organization = new Parameter(definitions.organization_id)
  const maxRowBytes = new Parameter(maxRowBytesOf(position))
  const { check, guide } = compileCondition(condition, definitions, stack_id, organization)
  const [beyond, order] = position.direction === 'asc' ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`]
  const candidates = (start: string, round: number) =>
    guide &&
    sql`select i.id from (${guide.ids}) i(id) where i.id ${beyond} ${start}::uuid
      order by i.id ${order} limit ${candidatesOf(position, round)}::integer`
  const rows = (start: string, wanted: number, round: number): Query => {
    const ids = candidates(start, round)
    const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack_id}::integer`
    // Candidate by candidate, which no lack of statistics turns into a scan of the stack; nor does the order as text.
    const matching = sql`select distinct m.id from unnest(array(${ids})) candidate(id)
      cross join lateral (select e.id from entities e where ${own} and e.id = candidate.id and ${check} offset 0) m
      order by m.id ${order} limit ${wanted}::integer`
    const selection = ids
      ? sql`where ${own} and e.id = any(array(${matching})) order by e.id::text collate "C" ${order}`
      : sql`where ${own} and e.id ${beyond} ${start}::uuid and ${check} order by e.id ${order} limit ${wanted}::integer`
    const { text, values } = render(selection, [organization, maxRowBytes])
    return { text: readRows(text), values }
  }
  if (!guide) return { rows }
  const boundary = (start: string, round: number): Query => {
    const last = sql`select i.id from (${candidates(start, round)}) i offset ${candidatesOf(position, round) - 1}::integer limit 1`
    return render(last, [organization])
  }
  return { rows, boundary }
}
