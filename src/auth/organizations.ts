import { type GlobalDatabase, throwCellAway } from '../cells/cell-pool.ts'
import { findOrganization, firstCellName } from '../organizations/organizations.ts'
import type { Caller } from './caller.ts'
import { createTtlCache, type TtlCache } from './ttl-cache.ts'

/** A token is accepted for at most `maxAgeMs` after its organization is deleted or its client is revoked. */
export const cacheTimes = { refreshMs: 5_000, maxAgeMs: 10_000, notFoundMs: 1_000 }

/** An organization. `isMoving` says that its cell may change at any moment. */
type CachedOrganization = Caller['organization'] & { isMoving?: true }

export type Organizations = TtlCache<CachedOrganization>

/**
 * Caches organizations by key, and tells the directory of the cells where they live. An unknown key is queried again after a second, and
 * an organization that moves to another cell for each request.
 */
export function createOrganizations(db: GlobalDatabase, nowMs: () => number): Organizations {
  return createTtlCache<CachedOrganization>(
    async (key, signal) => {
      const organization = await findOrganization(db, key, signal)
      if (!organization) return undefined
      if (!db.directory && organization.cell !== firstCellName) return throwCellAway()
      db.directory?.learn(organization)
      const { id, moving_to } = organization
      return Object.freeze(moving_to === null ? { id, key } : { id, key, isMoving: true })
    },
    { nowMs, ...cacheTimes, isCacheable: ({ isMoving }) => !isMoving },
  )
}
