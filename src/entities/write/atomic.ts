import { announceCommit } from '../../changes/commit-events.ts'
import type { Database } from '../../db/db.ts'
import { isConflict } from '../../db/pg-errors.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import { Fault, type Refusal } from '../../errors.ts'
import { type Done, type Outcome, unkeyed } from '../write-request.ts'
import type { WriteOptions } from './run-writes.ts'
import { type Planned, write } from './write.ts'

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
  db: Database,
  planned: Planned,
  { limits, signal }: WriteOptions,
  nextRefusal?: Refusal,
): Promise<Done[]> {
  const transact = () =>
    db.transaction(
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
  announceCommit(db, planned.definitions.organization_id)
  return done
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
