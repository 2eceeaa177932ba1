import { announceCommit } from '../changes/commit-events.ts'
import type { Database, Transaction } from '../db/db.ts'
import { isConflict } from '../db/pg-errors.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import { Fault, type Refusal } from '../errors.ts'
import { cachedDefinitions } from '../organizations/definitions.ts'
import { lockDefinitions } from '../organizations/head.ts'
import { readSameAs } from './write/alias-stage.ts'
import { runInSets, runStages, type WriteOptions } from './write/write-sets.ts'
import type { Done, Outcome, Write } from './write-request.ts'

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
  const cached = await cachedDefinitions(db, organization_id, options.signal)
  const write = async (tx: Transaction) => {
    let definitions = await lockDefinitions(tx, cached)
    const { limits, previews } = options
    previews?.clear()
    const outcomes = new Array<Outcome>(writes.length)
    await runInSets(writes, outcomes, {
      limits,
      nextDefinitions: () => definitions,
      readSameAs: (items, definitions) => readSameAs(tx, definitions, items),
      run: async (set, _, isLast) => {
        const ending = previews ? { previews, isLast } : 'continue'
        const ran = await runStages(tx, definitions, set, limits, ending)
        definitions = ran.definitions
        return ran.outcomes
      },
    })
    const results = outcomes.map(doneOrThrow)
    if (nextRefusal) throw new Fault(nextRefusal)
    return results
  }
  const { signal } = options
  const results = await retryConflicts(() => db.transaction(write, { signal }), isConflict, signal)
  if (!options.previews) announceCommit(db, organization_id)
  return results
}

function doneOrThrow(outcome: Outcome, index: number): Done {
  if ('refusal' in outcome) throw new AtomicRefusal(index, outcome.refusal)
  if ('error' in outcome) throw outcome.error
  return outcome.done
}
