import { type Context, contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import { expiredBefore } from './kept-responses.ts'
import { forgetKeysSql, listOrganizationsWithExpiredKeysSql } from './sql.ts'

const maxKeysPerStatement = 1_000

/** Deletes the keys that are older than 24 hours, in small transactions. Returns the number of deleted keys. */
export async function forgetKeys(db: Database, { signal }: { signal?: Signal } = {}): Promise<number> {
  const before = expiredBefore()
  let forgotten = 0
  const organizations = await db.query<{ organization_id: number }>(listOrganizationsWithExpiredKeysSql, [before])
  for (const { organization_id } of organizations)
    forgotten += await forgetKeysOf(contextOf(db, organization_id), before, signal)
  return forgotten
}

async function forgetKeysOf({ db, organization_id }: Context, before: string, signal?: Signal): Promise<number> {
  let forgotten = 0
  while (!signal?.aborted) {
    const [{ gone } = { gone: 0 }] = await db.query<{ gone: number }>(forgetKeysSql, [
      organization_id,
      before,
      maxKeysPerStatement,
    ])
    forgotten += gone
    if (gone < maxKeysPerStatement) break
  }
  return forgotten
}
