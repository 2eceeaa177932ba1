import { announceCommit } from '../changes/commit-events.ts'
import type { Database } from '../db/db.ts'
import { isDeadlock, isNullOf, isUnavailable, isUniqueViolation } from '../db/pg-errors.ts'
import { conflictFault, maxAttempts, pauseAfter } from '../db/retry-policy.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { addressedName, type Item, type SetSize, takeSet } from './conflicts.ts'
import type { DecisionLimits } from './decide.ts'
import { nameKey, planWrite } from './plan-write.ts'
import { LostRace, lockAddressed } from './read-stage.ts'
import { DefinitionsChanged, runWriteSet, type SetOutcomes } from './run-write-set.ts'
import { countGrowth } from './statistics.ts'
import type { WriteOrder } from './write-ordering.ts'
import type { Outcome, Write } from './write-request.ts'

export type WriteLimits = DecisionLimits & { links: number }
export type WriteOptions = {
  limits: WriteLimits
  signal?: Signal | undefined
  /** Runs a failed set again in halves and lets a single write wait for its locks. If false, the caller retries. */
  halves?: boolean
  /** Maximum size of a set, if it differs from the default. */
  setSize?: SetSize
  /** Shared by concurrent calls whose writes must take effect in order. */
  writeOrder?: WriteOrder
}

/** Lock timeout of a set. A locked row must not delay the other items, so the set then runs in halves. */
const setLockTimeoutMs = 250

/**
 * Writes an array of entities of one organization. Returns the outcome of each write in the same order. The array is
 * split into sets of independent items. Each set is one transaction with a fixed number of statements. A refused or
 * failed item does not affect the others. Conflicting writes take effect in the order of the array. Rejects only if no
 * write has an outcome yet.
 */
export async function writeEntities(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(writes.length)
  let pending = writes.map((write, index) => ({ write, index }))
  let release: (() => void) | undefined
  try {
    while (pending.length > 0) {
      const definitions = await cachedDefinitions(db, organization_id, options.signal)
      const items = pending.map(({ write, index }) => planItem(write, index, definitions, options.limits))
      release ??= await options.writeOrder?.acquire(items)
      const { set, later } = takeSet(items, { size: options.setSize })
      if (db.outer && items.length === writes.length && later.length > 0)
        await db.transaction(tx => lockAddressed(tx, organization_id, items))
      const setOutcomes = await runSet(db, definitions, set, options)
      const inserted = countInserted(set, setOutcomes)
      for (const table of ['entities', 'links'] as const)
        countGrowth(db.outer ?? db, organization_id, table, inserted[table])
      for (const [item, outcome] of setOutcomes) outcomes[item] = outcome
      pending = [...set.filter(({ index }) => !setOutcomes.has(index)), ...later].sort((a, b) => a.index - b.index)
    }
  } catch (error) {
    if (pending.length === writes.length) throw error
    // Earlier sets have outcomes. Throwing now would tell the caller to retry all of them.
    for (const { index } of pending) outcomes[index] = { error }
  } finally {
    release?.()
  }
  return outcomes
}

const hasChanges = (outcomes: SetOutcomes) =>
  [...outcomes.values()].some(outcome => 'done' in outcome && outcome.done.result !== 'unchanged')

/** Counts the inserted rows approximately: placeholders are not counted. */
function countInserted(set: Item[], setOutcomes: SetOutcomes): { entities: number; links: number } {
  const inserted = { entities: 0, links: 0 }
  for (const { index, plan } of set) {
    const outcome = setOutcomes.get(index)
    if (!outcome || !('done' in outcome)) continue
    if (outcome.done.result === 'created') inserted.entities += 1
    for (const { names } of plan.links.values()) inserted.links += names.length
  }
  return inserted
}

/** Plans a write as an item of a set. */
export function planItem(write: Write, index: number, definitions: Definitions, limits: WriteLimits): Item {
  const name = addressedName(write)
  return { write, index, plan: planWrite(write, definitions, limits.links), name: name && nameKey(name) }
}

async function runSet(
  db: Database,
  initialDefinitions: Definitions,
  set: Item[],
  options: WriteOptions,
): Promise<SetOutcomes> {
  let definitions = initialDefinitions
  let items = set
  for (let attempt = 1; ; attempt += 1) {
    try {
      const outcomes = await tryOnce(db, definitions, items, options)
      if (hasChanges(outcomes)) announceCommit(db, definitions.organization_id)
      return outcomes
    } catch (error) {
      const isStale = hasStaleDefinitions(error)
      const canRetry = isStale || isLostRace(error)
      if (options.signal?.aborted || !canRetry || attempt >= maxAttempts) {
        // A set that exceeded its lock timeout or failed otherwise runs in halves, until the faulty item is alone.
        // After a lost connection it does not, because the COMMIT may have succeeded.
        const canSplit =
          !isStale && options.halves !== false && items.length > 1 && !options.signal?.aborted && !isUnavailable(error)
        return canSplit
          ? runHalves(db, definitions, items, options)
          : new Map(items.map(({ index }) => [index, { error: canRetry ? conflictFault(error) : error }]))
      }
      await pauseAfter(attempt, options.signal)
      if (isStale) {
        definitions = await reloadDefinitions(db, definitions.organization_id, options.signal)
        items = items.map(({ write, index }) => planItem(write, index, definitions, options.limits))
      }
    }
  }
}

/** Whether the error means that the set was decided on outdated definitions. */
export const hasStaleDefinitions = (error: unknown): boolean =>
  error instanceof DefinitionsChanged || isNullOf(error, 'change_heads', 'schema_version')

/**
 * Whether the error means that a concurrent write came first. The set then succeeds or is refused when decided again.
 */
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
  // Writes without an address are inserted without a read.
  const readsFirst = items.some(({ write }) => write.address !== null)
  const options = { signal, lockTimeoutMs, readsFirst }
  return db.transaction(tx => runWriteSet(tx, definitions, items, limits, 'commit'), options)
}
