import { announceCommit } from '../../db/commit-events.ts'
import { type Context, contextOf } from '../../db/context.ts'
import type { Transaction } from '../../db/db.ts'
import { perDatabase } from '../../db/per-database.ts'
import { isConflict, isUnavailable } from '../../db/pg-errors.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import { runAndRollBack } from '../../db/run-and-roll-back.ts'
import { cachedDefinitions, type Definitions, definitionsAt } from '../../organizations/definitions.ts'
import { FairPool } from '../../process/fair-pool.ts'
import type { Signal } from '../../process/signal.ts'
import { Fault, type Refusal } from '../../values/errors.ts'
import { countGrowth } from '../indexes/statistics.ts'
import { type Done, type KeyedOutcome, type Outcome, unkeyed, type Write } from '../write-request.ts'
import { type IndexedWrite, indexed } from './plan.ts'
import { Previews } from './previews.ts'
import { type WriteLimits, type Written, write } from './write.ts'

export type WriteOptions = { limits: WriteLimits; signal?: Signal | undefined }

/** `mayGoOn` says whether a transaction may begin another round. */
export type SetOptions = WriteOptions & { mayGoOn?: (() => boolean) | undefined }

/**
 * Runs writes in one transaction, or in several if one would hold the head for long. Returns the outcomes by index.
 * With `mayGoOn`, these are the outcomes of the first transaction, which may end before the last write. A refused write
 * does not affect the others. A set that fails with an unexpected error runs again in halves, so that one odd value
 * does not fail the other writes.
 */
export async function runSet(
  context: Context,
  writes: readonly IndexedWrite[],
  options: SetOptions,
): Promise<Map<number, KeyedOutcome>> {
  const outcomes = await runTransaction(context, writes, options)
  if (options.mayGoOn || outcomes.size === writes.length) return outcomes
  const left = writes.filter(({ index }) => !outcomes.has(index))
  for (const each of await runSet(context, left, options)) outcomes.set(...each)
  return outcomes
}

async function runTransaction(
  context: Context,
  writes: readonly IndexedWrite[],
  { limits, signal, mayGoOn }: SetOptions,
): Promise<Map<number, KeyedOutcome>> {
  const { db } = context
  try {
    const known = await cachedDefinitions(context, signal)
    const transact = () =>
      db.transaction(tx => write(tx, writes, known, limits, 'commit', mayGoOn), { signal, readsFirst: true })
    const written = await retryConflicts(transact, isConflict, signal)
    if (written.hasChanges) announceCommit(context)
    countAdded(context, written)
    // The set is stored, whether this read succeeds or not. Without it, the next set reads the definitions.
    if (written.definitions !== known) await definitionsAt(context, written.definitions.version, signal).catch(() => {})
    return written.outcomes
  } catch (error) {
    if (writes.length === 1 || signal?.aborted || isUnavailable(error))
      return new Map(writes.map(({ index }) => [index, { error }]))
    const middle = Math.ceil(writes.length / 2)
    const outcomes = new Map<number, KeyedOutcome>()
    for (const half of [writes.slice(0, middle), writes.slice(middle)])
      for (const each of await runSet(context, half, { limits, signal })) outcomes.set(...each)
    return outcomes
  }
}

function countAdded(context: Context, { added }: Written) {
  const { db, organization_id } = context
  const outer = db.outer ? contextOf(db.outer, organization_id) : context
  for (const table of ['entities', 'links'] as const) countGrowth(outer, table, added[table])
}

/** Refusal of the first invalid item of an atomic array. `index` is its position in the array. */
export class AtomicRefusal extends Fault {
  readonly index: number
  constructor(index: number, refusal: Refusal) {
    super(refusal)
    this.index = index
  }
}

/**
 * Runs all writes in one transaction, or none. Throws {@link AtomicRefusal} for the first refused one. The caller gives
 * `nextRefusal` if it has already refused the item after the last one. Then nothing is stored, and the function throws
 * `nextRefusal` if no item is refused.
 */
export async function writeAtomically(
  context: Context,
  writes: readonly Write[],
  { limits, signal }: WriteOptions,
  nextRefusal?: Refusal,
): Promise<Done[]> {
  const known = await cachedDefinitions(context, signal)
  const transact = () =>
    context.db.transaction(async tx => requireAll(await writeWithin(tx, known, writes, limits), nextRefusal), {
      signal,
    })
  const done = await retryConflicts(transact, isConflict, signal)
  announceCommit(context)
  return done
}

/** Runs writes in a transaction, and leaves it open. Returns the outcome of each write. */
export async function writeWithin(
  tx: Transaction,
  definitions: Definitions,
  writes: readonly Write[],
  limits: WriteLimits,
): Promise<Outcome[]> {
  const { outcomes } = await write(tx, indexed(writes), definitions, limits, 'continue')
  return writes.map((_, index) => unkeyed(outcomes.get(index)!))
}

/** Returns the results of all writes. Throws as {@link writeAtomically} does. */
export function requireAll(outcomes: readonly Outcome[], nextRefusal?: Refusal): Done[] {
  const done = outcomes.map((outcome, index) => {
    if ('refusal' in outcome) throw new AtomicRefusal(index, outcome.refusal)
    if ('error' in outcome) throw outcome.error
    return outcome.done
  })
  if (nextRefusal) throw new Fault(nextRefusal)
  return done
}

/**
 * The maximum number of concurrent dry runs per organization. Each holds a connection, on which it may wait for the
 * head, and the writes of the organization need connections too.
 */
const maxConcurrentDryRuns = 2
const dryRuns = perDatabase(() => new FairPool({ share: maxConcurrentDryRuns }))

/** The outcomes of a dry run. `isTooLarge`: the values together have more characters of JSON than `maxLength`. */
export type DryRun = { outcomes: Outcome[]; isTooLarge: boolean }

/**
 * Returns the outcomes that writes would have. The transaction stores only the data that its later writes depend on,
 * and is rolled back. Throws the error of a failed transaction.
 */
export async function dryRun(
  context: Context,
  writes: readonly Write[],
  options: WriteOptions & { maxLength?: number },
): Promise<DryRun> {
  const { db, organization_id } = context
  const { limits, signal, maxLength } = options
  const known = await cachedDefinitions(context, signal)
  const attempt = () =>
    runAndRollBack(
      db,
      async tx => {
        const previews = new Previews(maxLength)
        const { outcomes } = await write(tx, indexed(writes), known, limits, previews)
        return { outcomes: writes.map((_, index) => unkeyed(outcomes.get(index)!)), isTooLarge: previews.isTooLarge }
      },
      { signal },
    )
  return retryConflicts(() => dryRuns(db).run(organization_id, signal, attempt), isConflict, signal)
}
