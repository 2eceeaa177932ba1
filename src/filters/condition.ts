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
 * The selects together give the ids of all entities that satisfy a condition, and possibly others. `others` are further selections, any of
 * which can be used instead. If they are exact, every candidate satisfies the condition.
 */
export type IndexCandidates = {
  rank: number
  selects: readonly Fragment[]
  isExact?: boolean | undefined
  others?: readonly IndexCandidates[]
}

/** The candidates of each index, those that are usually the fewest first. */
export const allIndexes = (best: IndexCandidates | undefined): readonly IndexCandidates[] =>
  best ? [best, ...(best.others ?? [])] : []

/** Selects all candidates. An entity may be several times among them. */
export const allCandidates = ({ selects }: IndexCandidates): Fragment => unionAll(selects)

/**
 * A condition in SQL. `check` is true or false for a row, never null. `indexCandidates` finds by index the rows that have
 * to be checked; if it is absent, every row of the stack is checked.
 */
export type CompiledCondition = { check: Fragment; indexCandidates?: IndexCandidates | undefined }

/** All conditions hold. The candidates of any one condition include every match, so the lowest rank is used first. */
export function and(conditions: readonly CompiledCondition[]): CompiledCondition {
  const candidates = conditions.flatMap(({ indexCandidates }) => indexCandidates ?? [])
  const [best, ...others] = candidates.sort((a, b) => a.rank - b.rank)
  const isExact = conditions.length === 1 && best?.isExact
  return { check: allOf(conditions.map(({ check }) => check)), indexCandidates: best && { ...best, isExact, others } }
}

/** One of the conditions holds. Indexes help only if every condition has candidates. */
export function or(conditions: readonly CompiledCondition[]): CompiledCondition {
  const check = anyOf(conditions.map(each => each.check))
  const candidates = conditions.flatMap(({ indexCandidates }) => indexCandidates ?? [])
  if (candidates.length === 0 || candidates.length < conditions.length) return { check }
  const rank = Math.max(...candidates.map(each => each.rank))
  return { check, indexCandidates: { rank, selects: candidates.flatMap(({ selects }) => selects) } }
}

/** A condition that no index helps with. */
export const unindexed = (check: Fragment): CompiledCondition => ({ check })

/** Counts the candidates of an index as `count`, up to one more than `max`, so that many of them cost no more. */
export const countCandidatesUpTo = (candidates: IndexCandidates, max: number): Fragment =>
  sql`select count(*)::integer as count from (select from (${allCandidates(candidates)}) i limit ${max + 1}::integer) c`
