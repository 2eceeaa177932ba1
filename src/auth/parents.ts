import type { Database, Statement } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import type { Caller, Credential } from '../route/caller.ts'
import { findLiveSessionsSql } from '../sessions/sql.ts'
import { organizationOf } from '../values/actor-names.ts'
import { isUuid } from '../values/formats.ts'
import { findClientsSql } from './sql.ts'
import { findTokensSql } from './tokens-sql.ts'
import { createTtlCache } from './ttl-cache.ts'

type Organization = Caller['organization']

/** The client, the session and the listed token that a token ends with, from its claims. */
export type ParentIds = Pick<Credential, 'client_id' | 'session_id' | 'token_id'>

/**
 * Caches for a few seconds whether the parents of tokens exist and are not revoked. Once the entry of a revoked client,
 * session or token expires, its tokens are refused. A token without parents passes.
 */
export function createParents(db: Database, nowMs: () => number) {
  const [clients, sessions] = [createCache(db, findClientsSql, nowMs), createCache(db, findLiveSessionsSql, nowMs)]
  const caches = [
    { name: 'client_id', cache: clients, problem: 'its client has been revoked' },
    { name: 'session_id', cache: sessions, problem: 'the session that it was made in has ended' },
    { name: 'token_id', cache: createCache(db, findTokensSql, nowMs), problem: 'it has been revoked' },
  ] as const
  return {
    /** Checks the cache synchronously. False if an entry is missing. */
    peek: (organization: Organization, ids: ParentIds): boolean =>
      caches.every(({ name, cache }) => {
        const id = ids[name]
        return (
          id === undefined || (isPossible(organization, name, id) && cache.peek(`${organization.id} ${id}`) === true)
        )
      }),
    /** The reason why the token is refused, or undefined if it is not. */
    find: async (organization: Organization, ids: ParentIds, signal?: Signal): Promise<string | undefined> => {
      for (const { name, cache, problem } of caches) {
        const id = ids[name]
        if (id === undefined) continue
        if (!isPossible(organization, name, id) || !(await cache.find(`${organization.id} ${id}`, signal)))
          return problem
      }
      return undefined
    },
  }
}

const isPossible = ({ key }: Organization, name: keyof ParentIds, id: string) =>
  name === 'client_id' ? organizationOf(id) === key : isUuid(id)

/**
 * The keys consist of an organization and an id. The statement finds the ids of many organizations that are not
 * revoked.
 */
function createCache(db: Database, findSql: Statement, nowMs: () => number) {
  const load = async (keys: readonly string[], signal?: Signal): Promise<ReadonlyMap<string, true>> => {
    const pairs = keys.map(key => key.split(' '))
    const values = [pairs.map(([organization_id]) => Number(organization_id)), pairs.map(([, id]) => id)]
    const found = await db.query<{ organization_id: number; id: string }>(findSql, values, signal)
    return new Map(found.map(({ organization_id, id }) => [`${organization_id} ${id}`, true]))
  }
  return createTtlCache(nowMs, async (key, signal) => (await load([key], signal)).get(key), load)
}
