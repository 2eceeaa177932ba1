import type { Database } from '../db/db.ts'
import { isDeadlock, isNullOf, isUnavailable, isUniqueViolation } from '../db/pg-errors.ts'
import { conflictFault, maxAttempts, pauseAfter } from '../db/retry-policy.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { addressedName, type Item, type SetSize, takeSet } from './conflicts.ts'
import type { DecisionLimits } from './decide.ts'
import { nameKey, planWrite } from './plan-write.ts'
import { LostRace, lockAddressed } from './read-stage.ts'
import { DefinitionsMovedOn, runWriteSet, type SetOutcomes } from './run-write-set.ts'
import { countGrowth } from './statistics.ts'
import type { Turns } from './write-ordering.ts'
import type { Outcome, Write } from './write-request.ts'

export type WriteLimits = DecisionLimits & { links: number }
export type WriteOptions = {
  limits: WriteLimits
  signal?: Signal | undefined
  /** A set that fails is run again in halves, and a single write waits for its locks; else the caller sees to that. */
  halves?: boolean
  /** How large a set may be, where it is not the usual size. */
  setSize?: SetSize
  /** Shared with what is written at the same time, and in an order that a reader would notice. */
  turns?: Turns
}

/** One row locked elsewhere must not stall those beside it: after this long they are run in halves. */
const setLockTimeoutMs = 250

/**
 * Writes an array of entities of one organization, and answers each write's outcome in the same order. The array is
 * cut into sets that can be decided side by side; each set is one transaction with a fixed number of statements. One
 * item's refusal or failure does not touch its neighbours. Writes that conflict take effect in order of arrival.
 */
export async function writeEntities(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(writes.length)
  let pending = writes.map((write, index) => ({ write, index }))
  let end: (() => void) | undefined
  try {
    while (pending.length > 0) {
      const definitions = await cachedDefinitions(db, organization_id, options.signal)
      const items = pending.map(({ write, index }) => planItem(write, index, definitions, options.limits))
      end ??= await options.turns?.take(items)
      const { set, later } = takeSet(items, { size: options.setSize })
      if (db.outer && items.length === writes.length && later.length > 0)
        await db.transaction(tx => lockAddressed(tx, organization_id, items))
      const settled = await runSet(db, definitions, set, options)
      const made = countMade(set, settled)
      for (const table of ['entities', 'links'] as const)
        countGrowth(db.outer ?? db, organization_id, table, made[table])
      for (const [item, outcome] of settled) outcomes[item] = outcome
      pending = [...set.filter(({ index }) => !settled.has(index)), ...later].sort((a, b) => a.index - b.index)
    }
  } catch (error) {
    if (pending.length === writes.length) throw error
    // The sets before have outcomes, and what is thrown says of all that it may be run again.
    for (const { index } of pending) outcomes[index] = { error }
  } finally {
    end?.()
  }
  return outcomes
}

/** About how many rows came to be: links may have brought entities to life, too. */
function countMade(set: Item[], settled: SetOutcomes): { entities: number; links: number } {
  const made = { entities: 0, links: 0 }
  for (const { index, plan } of set) {
    const outcome = settled.get(index)
    if (!outcome || !('done' in outcome)) continue
    if (outcome.done.result === 'created') made.entities += 1
    for (const { names } of plan.links.values()) made.links += names.length
  }
  return made
}

export function planItem(write: Write, index: number, definitions: Definitions, limits: WriteLimits): Item {
  const name = addressedName(write)
  return { write, index, plan: planWrite(write, definitions, limits.links), name: name && nameKey(name) }
}

async function runSet(db: Database, known: Definitions, set: Item[], options: WriteOptions): Promise<SetOutcomes> {
  let definitions = known
  let items = set
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await tryOnce(db, definitions, items, options)
    } catch (error) {
      const stale = isStale(error)
      const again = stale || isLostRace(error)
      if (options.signal?.aborted || !again || attempt >= maxAttempts) {
        // A set that exceeded its lock timeout, or broke for any other reason, is run in halves: the culprit ends up alone.
        // Not so when the connection is gone: its COMMIT may have been carried out.
        const splits =
          !stale && options.halves !== false && items.length > 1 && !options.signal?.aborted && !isUnavailable(error)
        return splits
          ? runHalves(db, definitions, items, options)
          : new Map(items.map(({ index }) => [index, { error: again ? conflictFault(error) : error }]))
      }
      await pauseAfter(attempt, options.signal)
      if (stale) {
        definitions = await reloadDefinitions(db, definitions.organization_id, options.signal)
        items = items.map(({ write, index }) => planItem(write, index, definitions, options.limits))
      }
    }
  }
}

/** Decided on definitions that are no longer the organization's. */
export const isStale = (error: unknown): boolean =>
  error instanceof DefinitionsMovedOn || isNullOf(error, 'change_heads', 'schema_version')

/** Somebody else got there first: the same set, decided again, finds what they left. */
export const isLostRace = (error: unknown): boolean =>
  error instanceof LostRace ||
  isUniqueViolation(error) ||
  isDeadlock(error) ||
  isNullOf(error, 'change_heads', 'sequence')

async function runHalves(
  db: Database,
  definitions: Definitions,
  items: Item[],
  options: WriteOptions,
): Promise<SetOutcomes> {
  const middle = Math.ceil(items.length / 2)
  const first = await runSet(db, definitions, items.slice(0, middle), options)
  const second = await runSet(db, definitions, items.slice(middle), options)
  return new Map([...first, ...second])
}

function tryOnce(
  db: Database,
  definitions: Definitions,
  items: Item[],
  { limits, signal, halves }: WriteOptions,
): Promise<SetOutcomes> {
  const lockTimeoutMs = items.length > 1 || halves === false ? setLockTimeoutMs : undefined
  // What addresses nobody is inserted without a look at what stands.
  const readsFirst = items.some(({ write }) => write.address !== null)
  const options = { signal, lockTimeoutMs, readsFirst }
  return db.transaction(tx => runWriteSet(tx, definitions, items, limits, 'commit'), options)
}
