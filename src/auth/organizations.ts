import type { Database } from '../db/db.ts'
import { findOrganization } from '../organizations/organizations.ts'
import type { Caller } from './caller.ts'
import { createTtlCache, type TtlCache } from './ttl-cache.ts'

/** How long a token outlives its organization, or a client its revocation, at most: `forgetMs`. */
export const memoryTimes = { renewMs: 5_000, forgetMs: 10_000, unknownMs: 1_000 }

export type Organizations = TtlCache<Caller['organization']>

/** Organizations by key. One that is unknown is asked for again after a second. */
export function createOrganizations(db: Database, nowMs: () => number): Organizations {
  return createTtlCache(
    async (key, signal) => {
      const organization = await findOrganization(db, key, signal)
      return organization && Object.freeze({ id: organization.id, key })
    },
    { nowMs, ...memoryTimes },
  )
}
