import type { Database, Transaction } from '../db/db.ts'
import { conflictFault, maxAttempts, pauseAfter } from '../db/retry-policy.ts'
import { Fault, type Refusal } from '../errors.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import { takeSet } from './conflicts.ts'
import { lockAddressed } from './read-stage.ts'
import { runWriteSet } from './run-write-set.ts'
import type { Done, Outcome, Write } from './write-request.ts'
import { isLostRace, isStale, planItem, type WriteOptions } from './write-sets.ts'

/** The first item of an all-or-nothing array that was refused. */
export class AtomicRefusal extends Fault {
  readonly index: number
  constructor(index: number, refusal: Refusal) {
    super(refusal)
    this.index = index
  }
}

/**
 * Writes all of an array or nothing of it, in one transaction: set after set, as conflicts demand, committed at the
 * end. Throws {@link AtomicRefusal} with the lowest index that was refused. With `refused`, what follows the array is
 * known to be refused with it: nothing is stored, and that is thrown where nothing of the array is refused before.
 */
export async function writeAtomically(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
  refused?: Refusal,
): Promise<Done[]> {
  let definitions = await cachedDefinitions(db, organization_id, options.signal)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction(
        async tx => {
          const written = await writeAll(tx, definitions, writes, options)
          if (refused) throw new Fault(refused)
          return written
        },
        { signal: options.signal },
      )
    } catch (error) {
      if (options.signal?.aborted || !(isStale(error) || isLostRace(error))) throw error
      if (attempt >= maxAttempts) throw conflictFault(error)
      await pauseAfter(attempt, options.signal)
      if (isStale(error)) definitions = await reloadDefinitions(db, organization_id, options.signal)
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
    const settled = await runWriteSet(tx, definitions, set, limits, 'continue')
    for (const [index, outcome] of settled) outcomes[index] = outcome
    pending = [...set.filter(({ index }) => !settled.has(index)), ...later].sort((a, b) => a.index - b.index)
  }
  return outcomes.map((outcome, index) => {
    if ('refusal' in outcome) throw new AtomicRefusal(index, outcome.refusal)
    if ('error' in outcome) throw outcome.error
    return outcome.done
  })
}
