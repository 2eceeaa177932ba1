import type { Definitions } from '../organizations/definitions.ts'
import { all, type Fragment, type Parameter, some, unionAll } from './fragment.ts'

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
export const guideRanks = { identifier: 0, email: 1, term: 2, range: 3, links: 4 } as const

/** Selects the ids of all entities that a condition holds of, and maybe of others. */
export type Guide = { rank: number; ids: Fragment }

/** A condition in SQL. `check` is true or false of a row, never null; `guide` finds the rows worth checking by an index. */
export type Asked = { check: Fragment; guide?: Guide | undefined }

/** Whoever passes all is found by any one guide. */
export function askAll(asked: readonly Asked[]): Asked {
  const guides = asked.flatMap(({ guide }) => guide ?? [])
  return { check: all(asked.map(({ check }) => check)), guide: guides.sort((a, b) => a.rank - b.rank)[0] }
}

/** Indexes help a choice only when each of its ways has one. */
export function askAny(asked: readonly Asked[]): Asked {
  const ids = unionAll(asked.map(({ guide }) => guide?.ids))
  const rank = Math.max(...asked.map(({ guide }) => guide?.rank ?? 0))
  return { check: some(asked.map(({ check }) => check)), guide: ids && { rank, ids } }
}

export const plainly = (check: Fragment): Asked => ({ check })
