import type { Database } from '../../db/db.ts'
import { KeyedSemaphore } from '../../db/keyed-semaphore.ts'
import { nestedDatabase } from '../../db/nested-transaction.ts'
import { isConflict } from '../../db/pg-errors.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import { runAndRollBack } from '../../db/run-and-roll-back.ts'
import type { Signal } from '../../signal.ts'
import { Previews } from './previews.ts'

/**
 * The maximum number of concurrent dry runs per organization. Each holds a connection, on which it may wait for a locked row, and
 * the writes of the organization need connections too.
 */
const maxConcurrentDryRuns = 2
const dryRunPermits = new KeyedSemaphore<number>(maxConcurrentDryRuns)

export type DryRunOptions = { signal?: Signal | undefined; maxLength?: number }

/**
 * Runs writes in one transaction and rolls it back. `work` gives the database and the previews that it receives to the write path,
 * which then stores only what later writes of the same dry run may depend on.
 */
export function dryRun<T>(
  db: Database,
  organization_id: number,
  { signal, maxLength }: DryRunOptions,
  work: (db: Database, previews: Previews) => Promise<T>,
): Promise<T> {
  const attempt = () =>
    runAndRollBack(
      db,
      async tx => {
        const nested = nestedDatabase(db, tx)
        let result: T
        try {
          result = await work(nested.db, new Previews(maxLength))
        } catch (error) {
          throw nested.broken() ?? error
        }
        if (nested.broken()) throw nested.broken()
        return result
      },
      { signal },
    )
  return retryConflicts(() => dryRunPermits.run(db, organization_id, signal, attempt), isConflict, signal)
}
