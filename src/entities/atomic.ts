import { announceCommit } from '../changes/commit-events.ts'
import type { Database, Transaction } from '../db/db.ts'
import { conflictFault, maxAttempts, pauseAfter } from '../db/retry-policy.ts'
import { Fault, type Refusal } from '../errors.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import { takeSet } from './conflicts.ts'
import { lockAddressed } from './read-stage.ts'
import { runWriteSet } from './run-write-set.ts'
import type { Done, Outcome, Write } from './write-request.ts'
import { hasStaleDefinitions, isLostRace, planItem, type WriteOptions } from './write-sets.ts'

/** Refusal of the first invalid item of an atomic array. `index` is its position in the array. */
export class AtomicRefusal extends Fault {
  readonly index: number
  constructor(index: number, refusal: Refusal) {
    super(refusal)
    this.index = index
  }
}

/**
 * Writes an array atomically, in one transaction. Items that conflict go into successive sets, and the transaction
 * commits after the last set. Throws {@link AtomicRefusal} for the refused item with the lowest index. The caller gives
 * `nextRefusal` if it has already refused the item after the array. Then nothing is stored, and the function throws
 * `nextRefusal` if no item of the array is refused.
 */
export async function writeAtomically(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
  nextRefusal?: Refusal,
): Promise<Done[]> {
  let definitions = await cachedDefinitions(db, organization_id, options.signal)
  for (let attempt = 1; ; attempt += 1) {
    try {
      const results = await db.transaction(
        async tx => {
          const results = await writeAll(tx, definitions, writes, options)
          if (nextRefusal) throw new Fault(nextRefusal)
          return results
        },
        { signal: options.signal },
      )
      announceCommit(db, organization_id)
      return results
    } catch (error) {
      if (options.signal?.aborted || !(hasStaleDefinitions(error) || isLostRace(error))) throw error
      if (attempt >= maxAttempts) throw conflictFault(error)
      await pauseAfter(attempt, options.signal)
      if (hasStaleDefinitions(error)) definitions = await reloadDefinitions(db, organization_id, options.signal)
    }
  }
}

async function writeAll(
  tx: Transaction,
  definitions: Definitions,
  writes: Write[],
  { limits }: WriteOptions,
): Promise<Done[]> {
  const outcomes = new Array<Outcome>(writes.length)
  let pending = writes.map((write, index) => planItem(write, index, definitions, limits))
  while (pending.length > 0) {
    const { set, later } = takeSet(pending)
    if (pending.length === writes.length && later.length > 0)
      await lockAddressed(tx, definitions.organization_id, pending)
    const setOutcomes = await runWriteSet(tx, definitions, set, limits, 'continue')
    for (const [index, outcome] of setOutcomes) outcomes[index] = outcome
    pending = [...set.filter(({ index }) => !setOutcomes.has(index)), ...later].sort((a, b) => a.index - b.index)
  }
  return outcomes.map((outcome, index) => {
    if ('refusal' in outcome) throw new AtomicRefusal(index, outcome.refusal)
    if ('error' in outcome) throw outcome.error
    return outcome.done
  })
}
