import type { Database } from '../db/db.ts'
import { findOrganization, findOrganizations } from '../organizations/organizations.ts'
import type { Caller } from '../route/caller.ts'
import { createTtlCache, type TtlCache } from './ttl-cache.ts'

/** A token is accepted for at most `maxAgeMs` after its organization is deleted or its client is revoked. */
export const cacheTimes = { refreshMs: 5_000, maxAgeMs: 10_000, notFoundMs: 1_000 }

export type Organizations = TtlCache<Caller['organization']>

/** Caches organizations by key. An unknown key is queried again after a second. */
export function createOrganizations(db: Database, nowMs: () => number): Organizations {
  return createTtlCache(
    async (key, signal) => {
      const organization = await findOrganization(db, key, signal)
      return organization && Object.freeze({ id: organization.id, key })
    },
    { nowMs, ...cacheTimes },
    async keys => {
      const organizations = await findOrganizations(db, keys)
      return new Map(organizations.map(({ id, key }) => [key, Object.freeze({ id, key })]))
    },
  )
}
