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
import { type Item, planItems } from './plan.ts'
import { Previews } from './previews.ts'
import { type Planned, type WriteLimits, write } from './write.ts'

export type WriteOptions = { limits: WriteLimits; signal?: Signal | undefined }

/** `mayGoOn` says whether a transaction may begin another round. */
export type SetOptions = WriteOptions & { mayGoOn?: (() => boolean) | undefined }

/** Plans writes with the definitions that this process knows. */
export async function planWrites(
  context: Context,
  writes: readonly Write[],
  { limits, signal }: WriteOptions,
): Promise<Planned> {
  const definitions = await cachedDefinitions(context, signal)
  const items = await planItems(
    writes.map((write, index) => ({ write, index })),
    definitions,
    limits.links,
  )
  return { items, definitions }
}

/**
 * Writes items in a transaction of their own, in more than one only if it would hold the head for long. Returns the outcome of each by its
 * index: with `mayGoOn`, those of the first transaction, which may end before the last item. A refused item does not affect the others. A set
 * that fails for a reason that nobody foresaw runs once more in halves, so that one odd value never fails its neighbours.
 */
export async function runSet(
  context: Context,
  planned: Planned,
  options: SetOptions,
): Promise<Map<number, KeyedOutcome>> {
  const { outcomes, definitions } = await runTransaction(context, planned, options)
  if (options.mayGoOn || outcomes.size === planned.items.length) return outcomes
  const items = planned.items.filter(({ index }) => !outcomes.has(index))
  for (const each of await runSet(context, { items, definitions }, options)) outcomes.set(...each)
  return outcomes
}

async function runTransaction(
  context: Context,
  planned: Planned,
  options: SetOptions,
): Promise<{ outcomes: Map<number, KeyedOutcome>; definitions: Definitions }> {
  const { limits, signal, mayGoOn } = options
  const { items, definitions } = planned
  const { db } = context
  try {
    const transact = () =>
      db.transaction(tx => write(tx, planned, limits, 'commit', mayGoOn), { signal, readsFirst: true })
    const written = await retryConflicts(transact, isConflict, signal)
    if (written.hasChanges) announceCommit(context)
    countInserted(context, items, written.outcomes)
    // The set is stored, whether this read succeeds or not. Without it, the next set reads the definitions.
    if (written.definitions !== definitions)
      await definitionsAt(context, written.definitions.version, signal).catch(() => {})
    return written
  } catch (error) {
    if (items.length === 1 || signal?.aborted || isUnavailable(error))
      return { definitions, outcomes: new Map(items.map(({ index }) => [index, { error }])) }
    const middle = Math.ceil(items.length / 2)
    const outcomes = new Map<number, KeyedOutcome>()
    for (const half of [items.slice(0, middle), items.slice(middle)])
      for (const each of await runSet(context, { items: half, definitions }, { limits, signal })) outcomes.set(...each)
    return { definitions, outcomes }
  }
}

/** Counts the inserted rows approximately: placeholders are not counted. */
function countInserted(context: Context, items: Item[], outcomes: ReadonlyMap<number, KeyedOutcome>) {
  const inserted = { entities: 0, links: 0 }
  for (const { index, plan } of items) {
    const outcome = outcomes.get(index)
    if (!outcome || !('done' in outcome)) continue
    if (outcome.done.result === 'created') inserted.entities += 1
    for (const { references } of plan.links.values()) inserted.links += references.length
  }
  const { db, organization_id } = context
  const outer = db.outer ? contextOf(db.outer, organization_id) : context
  for (const table of ['entities', 'links'] as const) countGrowth(outer, table, inserted[table])
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
 * Writes all items in one transaction, or none. Throws {@link AtomicRefusal} for the first refused one. The caller gives `nextRefusal` if
 * it has already refused the item after the last one. Then nothing is stored, and the function throws `nextRefusal` if no item is refused.
 */
export async function writeAtomically(
  context: Context,
  planned: Planned,
  { limits, signal }: WriteOptions,
  nextRefusal?: Refusal,
): Promise<Done[]> {
  const transact = () =>
    context.db.transaction(
      async tx => {
        const { outcomes } = await write(tx, planned, limits, 'continue')
        return requireAll(
          planned.items.map(({ index }) => unkeyed(outcomes.get(index)!)),
          nextRefusal,
        )
      },
      { signal },
    )
  const done = await retryConflicts(transact, isConflict, signal)
  announceCommit(context)
  return done
}

/** Writes as a part of another change, in its transaction, which has locked the head. */
export async function writeWithin(
  tx: Transaction,
  definitions: Definitions,
  writes: readonly Write[],
  limits: WriteLimits,
): Promise<Outcome[]> {
  const items = await planItems(
    writes.map((write, index) => ({ write, index })),
    definitions,
    limits.links,
  )
  const { outcomes } = await write(tx, { items, definitions }, limits, 'continue')
  return items.map(({ index }) => unkeyed(outcomes.get(index)!))
}

/** Returns what all writes did. Throws as {@link writeAtomically} does. */
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
 * The maximum number of concurrent dry runs per organization. Each holds a connection, on which it may wait for the head, and
 * the writes of the organization need connections too.
 */
const maxConcurrentDryRuns = 2
const dryRuns = perDatabase(() => new FairPool({ share: maxConcurrentDryRuns }))

/** What the writes would do. `isTooLarge` says that their values together have more characters of JSON than `maxLength`. */
export type DryRun = { outcomes: Outcome[]; isTooLarge: boolean }

/**
 * Tells what writes would do. Their transaction stores only what a later one of them depends on, and is rolled back. Throws what fails it.
 */
export async function dryRun(
  context: Context,
  writes: readonly Write[],
  options: WriteOptions & { maxLength?: number },
): Promise<DryRun> {
  const { db, organization_id } = context
  const { limits, signal, maxLength } = options
  const planned = await planWrites(context, writes, options)
  const attempt = () =>
    runAndRollBack(
      db,
      async tx => {
        const previews = new Previews(maxLength)
        const { outcomes } = await write(tx, planned, limits, previews)
        return { outcomes: writes.map((_, index) => unkeyed(outcomes.get(index)!)), isTooLarge: previews.isTooLarge }
      },
      { signal },
    )
  return retryConflicts(() => dryRuns(db).run(organization_id, signal, attempt), isConflict, signal)
}
