import type { Database } from '../db/db.ts'
import { nestedDatabase } from '../db/nested-transaction.ts'
import type { Outcome, Write } from '../entities/write-request.ts'
import { type WriteOptions, writeEntities } from '../entities/write-sets.ts'

/** Carries what was decided out of the transaction that must not be committed. */
class Rehearsed extends Error {
  readonly outcomes: Outcome[]
  constructor(outcomes: Outcome[]) {
    super('rehearsed')
    this.outcomes = outcomes
  }
}

/** As {@link writeEntities}, and nothing of it is stored. */
export async function dryRun(
  db: Database,
  organization_id: number,
  writes: Write[],
  options: WriteOptions,
): Promise<Outcome[]> {
  try {
    return await db.transaction(
      async tx => {
        const joined = nestedDatabase(db, tx)
        const outcomes = await writeEntities(joined.db, organization_id, writes, options)
        const broken = joined.broken()
        throw broken ?? new Rehearsed(outcomes)
      },
      { signal: options.signal },
    )
  } catch (error) {
    if (error instanceof Rehearsed) return error.outcomes
    throw error
  }
}
