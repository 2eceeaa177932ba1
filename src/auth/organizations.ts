import type { Database } from '../db/db.ts'
import { findOrganization } from '../organizations/directory.ts'
import { setBounded } from './bounded.ts'
import type { Caller } from './caller.ts'

/** How long an unknown key stays unknown without asking again, and how many of them are remembered. */
const unknown_ms = 1_000
const most_unknown = 1_000

export type FindOrganization = (key: string, signal?: AbortSignal) => Promise<Caller['organization'] | undefined>

/** Finds organizations by key: those found are known for the process's life, those not found for a second. */
export function createOrganizationFinder(db: Database, now_ms: () => number): FindOrganization {
  const known = new Map<string, Caller['organization']>()
  const unknown_until_ms = new Map<string, number>()
  return async (key, signal) => {
    const found = known.get(key)
    if (found || now_ms() < (unknown_until_ms.get(key) ?? 0)) return found
    const organization = await findOrganization(db, key, signal)
    if (organization) known.set(key, Object.freeze({ id: organization.id, key }))
    else setBounded(unknown_until_ms, key, now_ms() + unknown_ms, most_unknown)
    return known.get(key)
  }
}
