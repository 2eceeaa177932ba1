import { createHash } from 'node:crypto'
import { type Database, rootOf } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { Cancellation, type Signal } from '../signal.ts'
import type { UndeclaredKey } from './parse.ts'
import { searchKeySinceSql, searchKeySql } from './sql.ts'

/** What is known of an undeclared key: an entity carried it; none did up to a change; or the search took too long. */
type Known = { carried: true } | { carried: false; sequence: number } | { carried: 'unknown'; againMs: number }

/** `carried` is null where there were too many changes to look through. */
type Found = { sequence: number; carried: boolean | null }

/** How long a filter waits to learn which of its keys no entity carries: a million people are searched in half of it. */
export const defaultSearchMs = 3_000
/** How long a key whose search took longer is not searched again. */
const pauseMs = 600_000
/** So many changes are looked through in 36 ms. */
const mostChanges = 10_000
const mostKnown = 10_000

const knownKeys = new WeakMap<Database, Map<string, Known>>()

type SearchOptions = {
  signal?: Signal | undefined
  /** How long to search in all; undefined: until everything is known. */
  searchMs: number | undefined
}

/**
 * The keys that no entity of their stack carries. A stack is searched for a key once: a key that was found stays known, and for
 * one that was not found only the later changes are searched. A key of which nothing is known in time is not among them.
 */
export async function findUncarried(
  db: Database,
  definitions: Definitions,
  undeclared: readonly UndeclaredKey[],
  { signal, searchMs }: SearchOptions,
): Promise<UndeclaredKey[]> {
  const known = knownKeys.get(rootOf(db)) ?? new Map<string, Known>()
  knownKeys.set(rootOf(db), known)
  const begunMs = performance.now()
  const uncarried: UndeclaredKey[] = []
  for (const key of undeclared) {
    const id = idOf(definitions, key)
    const limitMs = searchMs === undefined ? undefined : searchMs - (performance.now() - begunMs)
    const after = await learn(db, definitions, key, known.get(id), { signal, limitMs })
    if (!after) break
    known.delete(id)
    known.set(id, after)
    if (known.size > mostKnown) known.delete(known.keys().next().value!)
    if (after.carried === false) uncarried.push(key)
  }
  return uncarried
}

/** A filter's key may have 64 kB, and is not kept. */
function idOf({ organization_id }: Definitions, { stack_id, key }: UndeclaredKey): string {
  return `${organization_id}:${stack_id}:${createHash('sha256').update(key).digest('base64')}`
}

/** What is known of a key after a search, if it needs one; undefined where no time is left. */
async function learn(
  db: Database,
  definitions: Definitions,
  key: UndeclaredKey,
  before: Known | undefined,
  { signal, limitMs }: { signal: Signal | undefined; limitMs: number | undefined },
): Promise<Known | undefined> {
  if (before?.carried === true) return before
  if (limitMs === undefined) return knownFrom(await search(db, definitions, key, before, signal))
  if (before?.carried === 'unknown' && performance.now() < before.againMs) return before
  if (limitMs <= 0) return undefined
  const found = await within(limitMs, signal, until => search(db, definitions, key, before, until))
  return found ? knownFrom(found) : { carried: 'unknown', againMs: performance.now() + pauseMs }
}

const knownFrom = ({ carried, sequence }: Found): Known => (carried ? { carried } : { carried: false, sequence })

async function search(
  db: Database,
  { organization_id, relationships }: Definitions,
  { stack_id, key }: UndeclaredKey,
  before: Known | undefined,
  signal: Signal | undefined,
): Promise<Found> {
  if (before?.carried === false) {
    const values = [organization_id, stack_id, key, before.sequence, mostChanges]
    const [later] = await db.query<Found>(searchKeySinceSql, values, signal)
    if (later && later.carried !== null) return later
  }
  const archived =
    relationships
      .get(stack_id)
      ?.get(key)
      ?.map(({ id }) => id) ?? []
  const [found] = await db.query<Found>(searchKeySql, [organization_id, stack_id, key, archived], signal)
  if (!found) throw new Error(`organization ${organization_id} has no head`)
  return found
}

/** What `work` answers; undefined where it takes longer than `limitMs`, and is cancelled. Throws the reason of `signal`. */
async function within<T>(
  limitMs: number,
  signal: Signal | undefined,
  work: (until: Signal) => Promise<T>,
): Promise<T | undefined> {
  signal?.throwIfAborted()
  const until = new Cancellation()
  const end = () => until.abort()
  signal?.addEventListener('abort', end, { once: true })
  const timer = setTimeout(end, limitMs)
  try {
    return await work(until)
  } catch (error) {
    signal?.throwIfAborted()
    if (until.aborted) return undefined
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}
