import type { Definitions } from '../../organizations/definitions.ts'
import { allOf, always, anyOf, type Fragment, type Parameter, sql, unionAll } from './fragment.ts'

/** The rows that a condition applies to: the entities of a stack, under an alias of the statement. */
export type Subject = {
  definitions: Definitions
  organization: Parameter
  stack_id: number
  /** The alias of the row in `entities`. */
  row: Fragment
  /** The number of relationships between the filtered entity and this row: 0 for the entity itself. */
  relationDepth: number
  /**
   * Whether the condition is checked for a whole stack. A condition on linked entities then reads the links once, and
   * PostgreSQL joins them by hashes. Otherwise it looks up the links of each row.
   */
  isWholeStack?: boolean
}

/** Ranks of the ways in which an index finds entities. A higher rank usually means more candidates. */
export const candidateRanks = { identifier: 0, email: 1, term: 2, range: 3, links: 4 } as const

/** The ids that an index gives. They include every match. */
export type Candidates = {
  rank: number
  /** The selects that have the ids as their first column. Their union is the set of candidates. */
  selects: readonly Fragment[]
  /** The check that a candidate's row still has to pass, or {@link always} if each candidate is a match. */
  rest: Fragment
  /**
   * Whether each select has distinct ids in the order of an index, so that the first ones can be read without the
   * others.
   */
  isOrdered?: boolean
  /** Whether no id occurs twice. */
  isDistinct?: boolean
}

/** A condition in SQL. `check` is true or false for a row, never null. */
export type CompiledCondition = {
  check: Fragment
  /** The candidates of each index that helps, with the usually fewest first. Any of them can be used. */
  candidates: readonly Candidates[]
  /** The matches of each part of the condition. The ids that all have in common are the matches of the whole. */
  exact?: readonly Candidates[] | undefined
}

/** Makes a condition, with the candidates of an index if one helps. */
export function compiled(check: Fragment, candidates?: Candidates): CompiledCondition {
  if (!candidates) return { check, candidates: [] }
  return { check, candidates: [candidates], exact: candidates.rest === always ? [candidates] : undefined }
}

/** Selects all candidates. An id may occur several times. */
export const allCandidates = ({ selects }: Candidates): Fragment => unionAll(selects)

/** Selects the id of each candidate once, as `id`. */
export const distinctCandidates = (candidates: Candidates): Fragment =>
  candidates.isDistinct
    ? sql`select i.id from (${allCandidates(candidates)}) i(id)`
    : sql`select distinct i.id from (${allCandidates(candidates)}) i(id)`

/**
 * All conditions hold. The candidates of each condition include every match, so one is enough. The checks of the others
 * remain.
 */
export function and(conditions: readonly CompiledCondition[]): CompiledCondition {
  const candidates = conditions.flatMap((condition, index) => {
    const others = conditions.filter((_, other) => other !== index).map(({ check }) => check)
    return condition.candidates.map(each => ({ ...each, rest: allOf([each.rest, ...others]) }))
  })
  const exact = conditions.flatMap(condition => condition.exact ?? [])
  return {
    check: allOf(conditions.map(({ check }) => check)),
    candidates: candidates.sort((a, b) => a.rank - b.rank),
    exact: conditions.every(condition => condition.exact) ? exact : undefined,
  }
}

/** One of the conditions holds. Indexes help only if every condition has candidates. */
export function or(conditions: readonly CompiledCondition[]): CompiledCondition {
  const check = anyOf(conditions.map(each => each.check))
  const best = conditions.flatMap(({ candidates }) => candidates.slice(0, 1))
  if (best.length === 0 || best.length < conditions.length) return compiled(check)
  const isExact = best.every(({ rest }) => rest === always)
  return compiled(check, {
    rank: Math.max(...best.map(each => each.rank)),
    selects: best.flatMap(({ selects }) => selects),
    rest: isExact ? always : check,
    isOrdered: best.every(({ isOrdered }) => isOrdered),
  })
}

/** Counts candidates up to one more than `max`, so that a large number costs no more. */
export const countUpTo = (candidates: Candidates, max: number): Fragment =>
  sql`select count(*)::integer as count from (select from (${allCandidates(candidates)}) i limit ${max + 1}::integer) c`
