import type { SessionAttributes } from '../../process/database-url.ts'

/**
 * The state that a server reports. `timeline` counts the promotions of its cluster, and `system` identifies the
 * cluster. Both are absent if the server is a standby or does not report them.
 */
export type ServerState = {
  isStandby: boolean
  isReadOnly: boolean
  system?: string | undefined
  timeline?: number | undefined
}

/** The cluster, and its newest known timeline. */
export type Seen = { system: string; timeline: number }

/** Whether the servers are for writes. A server of an older timeline is refused then. */
export const isForWrites = (wants: SessionAttributes): boolean => wants === 'read-write' || wants === 'primary'

/** The reason why a server may not be used, as "it …", or undefined if it may be used. */
export function refusalOf(state: ServerState, wants: SessionAttributes, seen?: Seen): string | undefined {
  const { isStandby, isReadOnly, system, timeline } = state
  if (wants === 'standby' && !isStandby) return 'is a primary'
  if (wants === 'read-only' && !isStandby && !isReadOnly) return 'accepts writes'
  if (!isForWrites(wants)) return undefined
  if (isStandby) return 'is a standby'
  if (wants === 'read-write' && isReadOnly) return 'is read-only (default_transaction_read_only)'
  if (!seen || system === undefined || timeline === undefined) return undefined
  if (system !== seen.system) return 'belongs to another cluster (its system identifier differs)'
  if (timeline >= seen.timeline) return undefined
  return `is on timeline ${timeline}, which ended when a standby was promoted to timeline ${seen.timeline}`
}

export type Candidate = { index: number; state: ServerState }

/**
 * Chooses among usable servers: a standby if one is preferred, then the newest timeline, then the previous server
 * (`last`, an index), then the order of the URL. The timelines of two clusters cannot be compared, so only servers of
 * the first one's cluster are chosen.
 */
export function chooseServer(
  candidates: readonly Candidate[],
  wants: SessionAttributes,
  last: number | undefined,
): Candidate | undefined {
  const inOrder = candidates.toSorted((a, b) => a.index - b.index)
  const system = inOrder.find(({ state }) => state.system !== undefined)?.state.system
  const comparable = inOrder.filter(({ state }) => state.system === undefined || state.system === system)
  const rankOf = ({ index, state }: Candidate) => [
    Number(wants !== 'prefer-standby' || state.isStandby),
    isForWrites(wants) ? (state.timeline ?? 0) : 0,
    Number(index === last),
  ]
  return comparable.toSorted((a, b) => compare(rankOf(b), rankOf(a)))[0]
}

const compare = (a: number[], b: number[]): number =>
  a.map((value, index) => value - b[index]!).find(difference => difference !== 0) ?? 0
