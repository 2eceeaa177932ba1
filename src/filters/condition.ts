import type { Definitions } from '../organizations/definitions.ts'
import { allOf, anyOf, type Fragment, type Parameter, sql, unionAll } from './fragment.ts'

/** The rows that a condition applies to: the entities of a stack, under an alias of the statement. */
export type Subject = {
  definitions: Definitions
  organization: Parameter
  stack_id: number
  /** The alias of the row in `entities`. */
  row: Fragment
  /** How many relationships lead from the filtered entity to this row: 0 for the entity itself. */
  relationDepth: number
  /**
   * Whether the condition is checked for a whole stack. Conditions on linked entities then read the links once for all rows, and PostgreSQL
   * joins them by hashes. Otherwise they look up the links of each row.
   */
  isWholeStack?: boolean
}

/** Ranks of the ways in which an index finds entities. A higher rank usually finds more of them. */
export const indexCandidateRanks = { identifier: 0, email: 1, term: 2, range: 3, links: 4 } as const

/**
 * Selects the ids of all entities that satisfy a condition, and possibly others. `others` are further selections, any of which can be used
 * instead.
 */
export type IndexCandidates = { rank: number; ids: Fragment; others?: readonly IndexCandidates[] }

/**
 * A condition in SQL. `check` is true or false for a row, never null. `indexCandidates` finds by index the rows that have
 * to be checked; if it is absent, every row of the stack is checked.
 */
export type CompiledCondition = { check: Fragment; indexCandidates?: IndexCandidates | undefined }

/** All conditions hold. The candidates of any one condition include every match, so the lowest rank is used first. */
export function and(conditions: readonly CompiledCondition[]): CompiledCondition {
  const candidates = conditions.flatMap(({ indexCandidates }) => indexCandidates ?? [])
  const [best, ...others] = candidates.sort((a, b) => a.rank - b.rank)
  return { check: allOf(conditions.map(({ check }) => check)), indexCandidates: best && { ...best, others } }
}

/** One of the conditions holds. Indexes help only if every condition has candidates. */
export function or(conditions: readonly CompiledCondition[]): CompiledCondition {
  const ids = unionAll(conditions.map(({ indexCandidates }) => indexCandidates?.ids))
  const rank = Math.max(...conditions.map(({ indexCandidates }) => indexCandidates?.rank ?? 0))
  return { check: anyOf(conditions.map(({ check }) => check)), indexCandidates: ids && { rank, ids } }
}

/** A condition that no index helps with. */
export const unindexed = (check: Fragment): CompiledCondition => ({ check })

/** Counts the candidates of an index as `count`, up to one more than `max`, so that many of them cost no more. */
export const countCandidatesUpTo = ({ ids }: IndexCandidates, max: number): Fragment =>
  sql`select count(*)::integer as count from (select from (${ids}) i limit ${max + 1}::integer) c`
