import { createHash } from 'node:crypto'
import { type Database, dataKeyOf } from '../../db/db.ts'
import { withTimeLimit } from '../../db/time-limit.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { Signal } from '../../process/signal.ts'
import { searchKeySinceSql, searchKeySql } from '../sql.ts'
import type { UndeclaredKey } from './parse.ts'

/**
 * The cached result for an undeclared key: an entity carried it, no entity did up to a change, or the search took too
 * long.
 */
type KnownResult = { carried: true } | { carried: false; sequence: number } | { carried: 'unknown'; retryAtMs: number }

/** The result of one search. `carried` is null if there were too many changes to search. */
type SearchResult = { sequence: number; carried: boolean | null }

/** How long a filter searches for its undeclared keys. A search of a million people takes half of this time. */
export const defaultSearchMs = 3_000
/** A key whose search took too long is not searched again for this time. */
const retryAfterMs = 600_000
/** The maximum number of later changes to search. 10,000 changes take 36 ms. */
const maxChanges = 10_000
const maxKnownKeys = 10_000

/** Ends a search that takes too long. */
const tooLate = Symbol('late')

/** The results of each database, in order of their last use. */
const knownResults = new WeakMap<object, Map<string, KnownResult>>()

type SearchOptions = {
  signal?: Signal | undefined
  /** The time for the search of all keys together. Undefined means no limit. */
  searchMs: number | undefined
}

/**
 * Finds the undeclared keys that no entity of their stack carries. A key that was found is cached and not searched
 * again. For other keys, the search reads only later changes, or the whole stack if there are more than `maxChanges`. A
 * key whose search does not end in time is left out.
 */
export async function findUnusedKeys(
  db: Database,
  definitions: Definitions,
  undeclared: readonly UndeclaredKey[],
  { signal, searchMs }: SearchOptions,
): Promise<UndeclaredKey[]> {
  const dataKey = dataKeyOf(db)
  const known = knownResults.get(dataKey) ?? new Map<string, KnownResult>()
  knownResults.set(dataKey, known)
  const startMs = performance.now()
  const unused: UndeclaredKey[] = []
  for (const key of undeclared) {
    const id = idOf(definitions, key)
    const limitMs = searchMs === undefined ? undefined : searchMs - (performance.now() - startMs)
    const result = await resultOf(db, definitions, key, known.get(id), { signal, limitMs })
    if (!result) break
    known.delete(id)
    known.set(id, result)
    if (known.size > maxKnownKeys) known.delete(known.keys().next().value!)
    if (result.carried === false) unused.push(key)
  }
  return unused
}

/** The id has a hash of the key, because a key in a filter can be as long as 64 kB. */
function idOf({ organization_id }: Definitions, { stack_id, key }: UndeclaredKey): string {
  return `${organization_id}:${stack_id}:${createHash('sha256').update(key).digest('base64')}`
}

/** Returns the result for a key, after a search if one is needed. Undefined if no time is left. */
async function resultOf(
  db: Database,
  definitions: Definitions,
  key: UndeclaredKey,
  before: KnownResult | undefined,
  { signal, limitMs }: { signal: Signal | undefined; limitMs: number | undefined },
): Promise<KnownResult | undefined> {
  if (before?.carried === true) return before
  if (limitMs === undefined) return knownFrom(await search(db, definitions, key, before, signal))
  if (before?.carried === 'unknown' && performance.now() < before.retryAtMs) return before
  if (limitMs <= 0) return undefined
  const searching = withTimeLimit(
    limitMs,
    signal,
    limited => search(db, definitions, key, before, limited),
    () => tooLate,
  )
  return searching.then(knownFrom, error => {
    if (error !== tooLate) throw error
    return { carried: 'unknown', retryAtMs: performance.now() + retryAfterMs }
  })
}

const knownFrom = ({ carried, sequence }: SearchResult): KnownResult =>
  carried ? { carried } : { carried: false, sequence }

async function search(
  db: Database,
  { organization_id, relationships }: Definitions,
  { stack_id, key }: UndeclaredKey,
  before: KnownResult | undefined,
  signal: Signal | undefined,
): Promise<SearchResult> {
  if (before?.carried === false) {
    const values = [organization_id, stack_id, key, before.sequence, maxChanges]
    const [later] = await db.query<SearchResult>(searchKeySinceSql, values, signal)
    if (later && later.carried !== null) return later
  }
  const archived =
    relationships
      .get(stack_id)
      ?.get(key)
      ?.map(({ id }) => id) ?? []
  const [found] = await db.query<SearchResult>(searchKeySql, [organization_id, stack_id, key, archived], signal)
  if (!found) throw new Error(`organization ${organization_id} has no head`)
  return found
}
