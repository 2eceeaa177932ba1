import { announceCommit } from '../../changes/commit-events.ts'
import type { Database } from '../../db/db.ts'
import { isConflict, isUnavailable } from '../../db/pg-errors.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import { cachedDefinitions, reloadDefinitions } from '../../organizations/definitions.ts'
import type { Signal } from '../../signal.ts'
import { countGrowth } from '../indexes/statistics.ts'
import type { KeyedOutcome, Write } from '../write-request.ts'
import { type Item, planItems } from './plan-write.ts'
import { type Planned, type WriteLimits, write } from './write.ts'

export type WriteOptions = { limits: WriteLimits; signal?: Signal | undefined }

/** Plans writes with the definitions that this process knows. */
export async function planWrites(
  db: Database,
  organization_id: number,
  writes: readonly Write[],
  { limits, signal }: WriteOptions,
): Promise<Planned> {
  const definitions = await cachedDefinitions(db, organization_id, signal)
  const items = await planItems(
    writes.map((write, index) => ({ write, index })),
    definitions,
    limits.links,
  )
  return { items, definitions }
}

/**
 * Writes items in a transaction of their own, in more than one only if it would hold the head for long. Returns the outcome of each by its
 * index. A refused item does not affect the others. A set that fails for a reason that nobody foresaw runs once more item by item, so that
 * one odd value never fails its neighbours.
 */
export async function runSet(
  db: Database,
  planned: Planned,
  options: WriteOptions,
): Promise<Map<number, KeyedOutcome>> {
  const outcomes = new Map<number, KeyedOutcome>()
  for (let rest = planned; rest.items.length > 0; ) {
    const ran = await runTransaction(db, rest, options)
    for (const [index, outcome] of ran.outcomes) outcomes.set(index, outcome)
    rest = { items: rest.items.filter(({ index }) => !outcomes.has(index)), definitions: ran.definitions }
  }
  return outcomes
}

async function runTransaction(
  db: Database,
  planned: Planned,
  options: WriteOptions,
): Promise<Planned & { outcomes: Map<number, KeyedOutcome> }> {
  const { limits, signal } = options
  const { items, definitions } = planned
  const { organization_id } = definitions
  try {
    const transact = () => db.transaction(tx => write(tx, planned, limits, 'commit'), { signal, readsFirst: true })
    const written = await retryConflicts(transact, isConflict, signal)
    if (written.hasChanges) announceCommit(db, organization_id)
    countInserted(db, organization_id, items, written.outcomes)
    // The set is stored, whether this read succeeds or not. Without it, the next set reads the definitions.
    if (written.definitions !== definitions) await reloadDefinitions(db, organization_id, signal).catch(() => {})
    return { ...written, items }
  } catch (error) {
    const outcomes = new Map<number, KeyedOutcome>()
    const isFinal = items.length === 1 || signal?.aborted || isUnavailable(error)
    for (const item of items) {
      const apart = isFinal ? undefined : await runTransaction(db, { items: [item], definitions }, options)
      outcomes.set(item.index, apart?.outcomes.get(item.index) ?? { error })
    }
    return { items, definitions, outcomes }
  }
}

/** Counts the inserted rows approximately: placeholders are not counted. */
function countInserted(
  db: Database,
  organization_id: number,
  items: Item[],
  outcomes: ReadonlyMap<number, KeyedOutcome>,
) {
  const inserted = { entities: 0, links: 0 }
  for (const { index, plan } of items) {
    const outcome = outcomes.get(index)
    if (!outcome || !('done' in outcome)) continue
    if (outcome.done.result === 'created') inserted.entities += 1
    for (const { references } of plan.links.values()) inserted.links += references.length
  }
  for (const table of ['entities', 'links'] as const)
    countGrowth(db.outer ?? db, organization_id, table, inserted[table])
}
