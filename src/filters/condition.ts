import type { Definitions } from '../organizations/definitions.ts'
import { allOf, anyOf, type Fragment, type Parameter, unionAll } from './fragment.ts'

/** Of whom something is asked: the entities of a stack, under an alias of the statement. */
export type Subject = {
  definitions: Definitions
  organization: Parameter
  stack_id: number
  /** The alias of the row in `entities`. */
  row: Fragment
  hops: number
}

/** By which an index finds entities; the later ones find more of them as a rule. */
export const indexCandidateRanks = { identifier: 0, email: 1, term: 2, range: 3, links: 4 } as const

/** Selects the ids of all entities that a condition holds of, and maybe of others. */
export type IndexCandidates = { rank: number; ids: Fragment }

/** A condition in SQL. `check` is true or false of a row, never null; `guide` finds the rows worth checking by an index. */
export type CompiledCondition = { check: Fragment; guide?: IndexCandidates | undefined }

/** Whoever passes all is found by any one guide. */
export function and(asked: readonly CompiledCondition[]): CompiledCondition {
  const guides = asked.flatMap(({ guide }) => guide ?? [])
  return { check: allOf(asked.map(({ check }) => check)), guide: guides.sort((a, b) => a.rank - b.rank)[0] }
}

/** Indexes help a choice only when each of its ways has one. */
export function or(asked: readonly CompiledCondition[]): CompiledCondition {
  const ids = unionAll(asked.map(({ guide }) => guide?.ids))
  const rank = Math.max(...asked.map(({ guide }) => guide?.rank ?? 0))
  return { check: anyOf(asked.map(({ check }) => check)), guide: ids && { rank, ids } }
}

export const unindexed = (check: Fragment): CompiledCondition => ({ check })
