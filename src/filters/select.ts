import { maxRowBytesOf, type Position, sizeToRead } from '../entities/pagination.ts'
import { readRows } from '../entities/read-sql.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { compileCondition } from './compile.ts'
import { Parameter, render, sql } from './fragment.ts'
import type { Condition } from './grammar.ts'

/** A statement. Its text contains only constants and `$n`. */
export type Query = { text: string; values: unknown[] }

export type MatchingStatements = {
  /** Reads the first `limit` matches after `start` among the candidates of this round, as rows of `ReadEntity`. */
  rows(start: string, limit: number, round: number): Query
  /** Reads the last candidate of this round, or no row if the round reaches the end. Absent if no index gives candidates. */
  boundary?(start: string, round: number): Query
}

// Most candidates of an index pass the rest of the filter. If few do, each later round checks more candidates at once.
const roundGrowth = 8
const maxCandidates = 100_000
const candidateCount = (position: Position, round: number) =>
  Math.min(2 * sizeToRead(position) * roundGrowth ** round, maxCandidates)

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
  const organization = new Parameter(definitions.organization_id)
  const maxRowBytes = new Parameter(maxRowBytesOf(position))
  const { check, indexCandidates } = compileCondition(condition, definitions, stack_id, organization)
  const [after, order] = position.direction === 'asc' ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`]
  const candidates = (start: string, round: number) =>
    indexCandidates &&
    sql`select i.id from (${indexCandidates.ids}) i(id) where i.id ${after} ${start}::uuid
      order by i.id ${order} limit ${candidateCount(position, round)}::integer`
  const rows = (start: string, limit: number, round: number): Query => {
    const ids = candidates(start, round)
    const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack_id}::integer`
    // The lateral join checks candidate by candidate, and the rows are ordered as text. Without statistics, PostgreSQL could
    // otherwise plan a scan of the stack.
    const matching = sql`select distinct m.id from unnest(array(${ids})) candidate(id)
      cross join lateral (select e.id from entities e where ${own} and e.id = candidate.id and ${check} offset 0) m
      order by m.id ${order} limit ${limit}::integer`
    const selection = ids
      ? sql`where ${own} and e.id = any(array(${matching})) order by e.id::text collate "C" ${order}`
      : sql`where ${own} and e.id ${after} ${start}::uuid and ${check} order by e.id ${order} limit ${limit}::integer`
    const { text, values } = render(selection, [organization, maxRowBytes])
    return { text: readRows(text), values }
  }
  if (!indexCandidates) return { rows }
  const boundary = (start: string, round: number): Query => {
    const last = sql`select i.id from (${candidates(start, round)}) i offset ${candidateCount(position, round) - 1}::integer limit 1`
    return render(last, [organization])
  }
  return { rows, boundary }
}
