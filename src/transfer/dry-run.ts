import type { Database } from '../db/db.ts'
import { nestedDatabase } from '../db/nested-transaction.ts'
import type { Outcome, Write } from '../entities/write-request.ts'
import { type WriteOptions, writeEntities } from '../entities/write-sets.ts'

/** Carries the outcomes out of the transaction, and rolls it back. */
class DryRunOutcomes extends Error {
  readonly outcomes: Outcome[]
  constructor(outcomes: Outcome[]) {
    super('dry run')
    this.outcomes = outcomes
  }
}

/** As {@link writeEntities}, but stores nothing. */
export async function dryRun(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
): Promise<Outcome[]> {
  try {
    return await db.transaction(
      async tx => {
        const nested = nestedDatabase(db, tx)
        const outcomes = await writeEntities(nested.db, organization_id, writes, options)
        const broken = nested.broken()
        throw broken ?? new DryRunOutcomes(outcomes)
      },
      { signal: options.signal },
    )
  } catch (error) {
    if (error instanceof DryRunOutcomes) return error.outcomes
    throw error
  }
}
