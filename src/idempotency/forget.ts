import type { Database } from '../db/db.ts'
import { deleteInSteps } from '../db/delete-in-steps.ts'
import type { Signal } from '../process/signal.ts'
import { expiredBefore } from './kept-responses.ts'
import { forgetKeysSql, listOrganizationsWithExpiredKeysSql } from './sql.ts'

const limit = 1_000

/** Deletes the keys that are older than 24 hours, in small transactions. Returns the number of deleted keys. */
export async function forgetKeys(db: Database, { signal }: { signal?: Signal } = {}): Promise<number> {
  const before = expiredBefore()
  let forgotten = 0
  const organizations = await db.query<{ organization_id: number }>(listOrganizationsWithExpiredKeysSql, [before])
  for (const { organization_id } of organizations)
    forgotten += await deleteInSteps(db, forgetKeysSql, [organization_id, before, limit], { limit, signal })
  return forgotten
}
