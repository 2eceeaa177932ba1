import type { Database } from '../db/db.ts'
import { findOrganization, findOrganizations } from '../organizations/organizations.ts'
import type { Caller } from '../route/caller.ts'
import { createTtlCache, type TtlCache } from './ttl-cache.ts'

export type Organizations = TtlCache<Caller['organization']>

/** Caches organizations by key. An unknown key is queried again after a second. */
export function createOrganizations(db: Database, nowMs: () => number): Organizations {
  return createTtlCache(
    nowMs,
    async (key, signal) => {
      const organization = await findOrganization(db, key, signal)
      return organization && Object.freeze({ id: organization.id, key })
    },
    async keys => {
      const organizations = await findOrganizations(db, keys)
      return new Map(organizations.map(({ id, key }) => [key, Object.freeze({ id, key })]))
    },
  )
}
