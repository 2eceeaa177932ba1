import { createHash } from 'node:crypto'
import { contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { searchFollowerName } from '../entities/indexes/search-index-sql.ts'
import { beginFollower } from '../followers/follower.ts'
import type { Signal } from '../process/signal.ts'
import { refuse, refuseValues } from '../values/errors.ts'
import { isUuid } from '../values/formats.ts'
import { parsePlace, printPlace } from '../values/parse-json.ts'
import { findPlaces, type Place, type Searched, type SearchedStack } from './search.ts'
import { readSearchStateSql } from './sql.ts'

/** `keys` are the searchable attributes whose words the index of a stack must contain. */
export type SearchedIndexes = {
  organization_id: number
  stacks: readonly (SearchedStack & { keys: readonly string[] })[]
}

const usesIndex = ({ text }: SearchedStack) => text.readings.length > 0

/** Makes kith index the words of an organization, if a search needs indexes that do not exist. */
export async function beginIndexes(db: Database, { organization_id, stacks }: Searched, signal: Signal): Promise<void> {
  if (stacks.some(usesIndex)) await beginFollower(contextOf(db, organization_id), searchFollowerName, signal)
}

export type FoundPage = { places: Place[]; has_more: boolean; sequence: number }
type PageOptions = { after: Place | undefined; size: number; signal: Signal }
type State = {
  head: number
  /** Null if the follower has never worked for the organization. */
  sequence: number | null
  keys: string[] | null
  indexed: number | null
  total: number | null
  is_ready: boolean | null
}

/** Finds a page of places. Throws a Fault of 503 while kith indexes the words of a stack. */
export function findPage(
  db: Database,
  searched: SearchedIndexes,
  { after, size, signal }: PageOptions,
): Promise<FoundPage> {
  return db.transaction(
    async tx => {
      const { organization_id, stacks } = searched
      const states = await tx.query<State>(readSearchStateSql, [
        organization_id,
        stacks.map(({ stack_id }) => stack_id),
      ])
      const { head, sequence } = states[0]!
      // An organization without changes has no entity to index.
      if (head === 0) return { places: [], has_more: false, sequence: 0 }
      for (const [index, stack] of stacks.entries()) if (usesIndex(stack)) throwUnlessReady(states[index]!, stack.keys)
      const places = await findPlaces(tx, searched, after, size + 1)
      return { places: places.slice(0, size), has_more: places.length > size, sequence: sequence ?? 0 }
    },
    { signal, readsFirst: true },
  )
}

function throwUnlessReady({ is_ready, indexed, total, ...state }: State, keys: readonly string[]) {
  const isCurrent = state.keys !== null && state.keys.join('\n') === keys.join('\n')
  if (isCurrent && is_ready) return
  const progress = isCurrent ? `${Math.min(indexed!, total!)} of about ${total} are done.` : 'It begins in a moment.'
  const message = `kith is still indexing the words that a search finds. ${progress} Retry in a few seconds.`
  refuse('operation_failed', message, { status: 503, headers: { 'Retry-After': '2' } })
}

/** A digest of the text and the stacks of a search, to which its cursors belong. */
export const digestOf = (stack_ids: readonly number[], text: string): string =>
  createHash('sha256').update(`${stack_ids.join()} ${text}`).digest('base64url').slice(0, 12)

export const printCursor = ({ rank, stack, id }: Place, digest: string): string => printPlace([rank, stack, id, digest])

/** Throws a Fault of 400 for a cursor of another search. */
export function parseCursor(cursor: string, digest: string): Place {
  const [rank, stack, id, of, ...rest] = parsePlace(cursor)
  const isCount = (count: unknown): count is number =>
    Number.isInteger(count) && Number(count) >= 0 && Number(count) <= maxRank
  if (isCount(rank) && isCount(stack) && typeof id === 'string' && isUuid(id) && of === digest && rest.length === 0)
    return { rank, stack, id }
  return refuseValues({ path: '/cursor', message: 'must be the next_cursor of a page with the same text' })
}

/** More than the maximum number of typos in all words of a text, and than that of the stacks of a search. */
const maxRank = 1_000
