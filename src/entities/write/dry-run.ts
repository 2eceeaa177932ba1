import type { Database } from '../../db/db.ts'
import { KeyedSemaphore } from '../../db/keyed-semaphore.ts'
import { isConflict } from '../../db/pg-errors.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import { runAndRollBack } from '../../db/run-and-roll-back.ts'
import { type Outcome, unkeyed, type Write } from '../write-request.ts'
import { Previews } from './previews.ts'
import { planWrites, type WriteOptions } from './run-writes.ts'
import { write } from './write.ts'

/**
 * The maximum number of concurrent dry runs per organization. Each holds a connection, on which it may wait for the head, and
 * the writes of the organization need connections too.
 */
const maxConcurrentDryRuns = 2
const dryRunPermits = new KeyedSemaphore<number>(maxConcurrentDryRuns)

/** What the writes would do. `isTooLarge` says that their values together have more characters of JSON than `maxLength`. */
export type DryRun = { outcomes: Outcome[]; isTooLarge: boolean }

/**
 * Tells what writes would do. Their transaction stores only what a later one of them depends on, and is rolled back. Throws what fails it.
 */
export async function dryRun(
  db: Database,
  organization_id: number,
  writes: readonly Write[],
  options: WriteOptions & { maxLength?: number },
): Promise<DryRun> {
  const { limits, signal, maxLength } = options
  const planned = await planWrites(db, organization_id, writes, options)
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
  return retryConflicts(() => dryRunPermits.run(db, organization_id, signal, attempt), isConflict, signal)
}
