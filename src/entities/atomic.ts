import { announceCommit } from '../changes/commit-events.ts'
import type { Database } from '../db/db.ts'
import { Fault, type Refusal } from '../errors.ts'
import { cachedDefinitions } from '../organizations/definitions.ts'
import { readSameAs } from './write/alias-stage.ts'
import { decideAgain, lockAll, runInSets, runStages, type WriteOptions } from './write/write-sets.ts'
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
  const results = await decideAgain(db, cached, options.signal, definitions =>
    db.transaction(
      async tx => {
        const { limits, previews } = options
        previews?.clear()
        const outcomes = new Array<Outcome>(writes.length)
        await runInSets(writes, outcomes, {
          limits,
          nextDefinitions: () => definitions,
          readSameAs: (items, definitions) => readSameAs(tx, definitions, items),
          begin: async (items, isSplit) => {
            if (isSplit) await lockAll(tx, definitions, items)
          },
          run: (set, _, isLast) =>
            runStages(tx, definitions, set, limits, previews ? { previews, isLast } : 'continue'),
        })
        const results = outcomes.map(doneOrThrow)
        if (nextRefusal) throw new Fault(nextRefusal)
        return results
      },
      { signal: options.signal },
    ),
  )
  if (!options.previews) announceCommit(db, organization_id)
  return results
}

function doneOrThrow(outcome: Outcome, index: number): Done {
  if ('refusal' in outcome) throw new AtomicRefusal(index, outcome.refusal)
  if ('error' in outcome) throw outcome.error
  return outcome.done
}
