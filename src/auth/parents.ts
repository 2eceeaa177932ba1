import { contextOf } from '../db/context.ts'
import type { Database, Statement } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import type { Caller, Credential } from '../route/caller.ts'
import { readLiveSession } from '../sessions/sessions.ts'
import { organizationOf } from '../values/actor-names.ts'
import { isUuid } from '../values/formats.ts'
import { cacheTimes } from './organizations.ts'
import { findClientsSql } from './sql.ts'
import { findTokensSql } from './tokens-sql.ts'
import { createTtlCache } from './ttl-cache.ts'

type Organization = Caller['organization']

/** The client, the session and the row of the list that a token ends with, as its claims name them. */
export type ParentIds = Pick<Credential, 'client_id' | 'session_id' | 'token_id'>

/** Whether what a token ends with still exists and is not revoked. A token that names nothing ends with nothing. */
export type Parents = {
  /** Answers at once, from what is cached. False if something is not. */
  peek(organization: Organization, ids: ParentIds): boolean
  /** Why the token is refused. Undefined if it is not. */
  find(organization: Organization, ids: ParentIds, signal?: Signal): Promise<string | undefined>
}

/** Caches for a few seconds what is not revoked. Once the entry of a revoked client, session or token expires, its tokens are refused. */
export function createParents(db: Database, nowMs: () => number): Parents {
  /** Keys are an organization and an id. The statement finds those of many organizations that are not revoked. */
  const cacheOf = (findSql: Statement) => {
    const load = async (keys: readonly string[], signal?: Signal): Promise<ReadonlyMap<string, true>> => {
      const pairs = keys.map(key => key.split(' '))
      const values = [pairs.map(([organization_id]) => Number(organization_id)), pairs.map(([, id]) => id)]
      const found = await db.query<{ organization_id: number; id: string }>(findSql, values, signal)
      return new Map(found.map(({ organization_id, id }) => [`${organization_id} ${id}`, true]))
    }
    return createTtlCache(async (key, signal) => (await load([key], signal)).get(key), { nowMs, ...cacheTimes }, load)
  }
  const [clients, tokens] = [cacheOf(findClientsSql), cacheOf(findTokensSql)]
  const sessions = createTtlCache(
    (key, signal) => {
      const [organization_id, session_id] = key.split(' ')
      return exists(readLiveSession(contextOf(db, Number(organization_id)), session_id!, signal))
    },
    { nowMs, ...cacheTimes },
  )
  const isOwnClient = ({ key }: Organization, client_id: string) => organizationOf(client_id) === key
  return {
    peek: (organization, { client_id, session_id, token_id }) =>
      (client_id === undefined ||
        (isOwnClient(organization, client_id) && clients.peek(`${organization.id} ${client_id}`) === true)) &&
      (session_id === undefined ||
        (isUuid(session_id) && sessions.peek(`${organization.id} ${session_id}`) === true)) &&
      (token_id === undefined || (isUuid(token_id) && tokens.peek(`${organization.id} ${token_id}`) === true)),
    find: async (organization, { client_id, session_id, token_id }, signal) => {
      const { id } = organization
      if (client_id !== undefined)
        if (!isOwnClient(organization, client_id) || !(await clients.find(`${id} ${client_id}`, signal)))
          return 'its client has been revoked'
      if (session_id !== undefined)
        if (!isUuid(session_id) || !(await sessions.find(`${id} ${session_id}`, signal)))
          return 'the session that it was made in has ended'
      if (token_id !== undefined)
        if (!isUuid(token_id) || !(await tokens.find(`${id} ${token_id}`, signal))) return 'it has been revoked'
      return undefined
    },
  }
}

const exists = async (rows: Promise<readonly unknown[]>): Promise<true | undefined> =>
  (await rows).length > 0 || undefined
