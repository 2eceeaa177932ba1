import { type Database, dataKeyOf, rootOf, type Transaction } from './db.ts'
import { perDatabase } from './per-database.ts'

/** An organization and the connections of a piece of work for it. See {@link contextOf}. */
export type Context = {
  /**
   * The connections of the work: a share of the pool, a standby, or the transaction of a request with an
   * Idempotency-Key.
   */
  readonly db: Database
  readonly organization_id: number
  /** The per-organization states of the process, see {@link perOrganization} and {@link perOrganizationData}. */
  readonly kept: Kept
}

/** Reads of an organization by a {@link Context}, a snapshot, or a transaction. */
export type Reading = { readonly db: Pick<Database, 'query'>; readonly organization_id: number }

/** A transaction of an organization that is in progress. */
export type Within = { readonly tx: Transaction; readonly organization_id: number }

/** The states of an organization in a database, each at the index of its declaration. */
export type Kept = { readonly states: unknown[]; data: { key: object; states: unknown[] } }

const organizations = perDatabase(() => new Map<number, Kept>())

/**
 * The organization with these connections. All shares of a database have one object for the organization, created at
 * the first use. A transaction that acts as a database has a separate one, because its reads may never be committed.
 */
export function contextOf(db: Database, organization_id: number): Context {
  const known = organizations(db)
  let kept = known.get(organization_id)
  if (!kept) {
    kept = { states: [], data: { key: rootOf(db), states: [] } }
    known.set(organization_id, kept)
  }
  return { db, organization_id, kept }
}

let places = 0

/** Returns a function that returns the state of an organization of a database. `create` makes it at the first use. */
export function perOrganization<T extends object>(create: () => T): (context: Context) => T {
  const place = places++
  return ({ kept: { states } }) => {
    states[place] ??= create()
    return states[place] as T
  }
}

/**
 * As {@link perOrganization}, for cached stored data. A switch to another server or timeline begins with a new state,
 * because the new primary may lack data that the old one showed. Take the state before the read whose result it caches.
 */
export function perOrganizationData<T extends object>(create: () => T): (context: Context) => T {
  const place = places++
  return ({ db, kept }) => {
    const key = dataKeyOf(db)
    if (kept.data.key !== key) kept.data = { key, states: [] }
    const { states } = kept.data
    states[place] ??= create()
    return states[place] as T
  }
}
