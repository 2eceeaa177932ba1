import { contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import type { Caller } from '../route/caller.ts'
import { bearerChallenge } from '../route/scopes.ts'
import { organizationKeyOf, readSession, type Session } from '../sessions/sessions.ts'
import { refuse } from '../values/errors.ts'
import { createLoginThrottle } from './login-throttle.ts'
import type { Organizations } from './organizations.ts'
import { createTtlCache } from './ttl-cache.ts'

/** A console session that a cookie has proved. `expires_at` is RFC 3339 in UTC. */
export type CallerSession = Readonly<{ caller: Caller } & Pick<Session, 'id' | 'method' | 'account_id' | 'expires_at'>>

type CachedSession = CallerSession & { isLive: boolean; expiresAtMs: number }

/** Caches sessions for a few seconds, so that a revoked session is refused once its entry expires. */
export function createSessions(db: Database, organizations: Organizations, nowMs: () => number) {
  const throttle = createLoginThrottle(nowMs)
  const cache = createTtlCache<CachedSession>(nowMs, async token => {
    const organization = await organizations.find(organizationKeyOf(token)!)
    const found = organization && (await readSession(contextOf(db, organization.id), token))
    if (!found) return undefined
    const { id, name, scopes, role, method, account_id, expires_at } = found.session
    const expiresAtMs = Date.parse(expires_at)
    const ends = { client_id: undefined, session_id: id, token_id: undefined }
    const credential = Object.freeze({ ...ends, budget: name, expiresAtMs })
    const given = { organization, subject: name, scopes, identity: `session\n${id}`, credential }
    const caller = Object.freeze(role === null ? given : { ...given, role })
    return Object.freeze({ id, caller, method, account_id, expires_at, isLive: found.isLive, expiresAtMs })
  })
  // A page sends many requests at once. They share one look-up, so that they count as one attempt.
  const pending = new Map<string, Promise<CachedSession | undefined>>()

  const lookUp = (token: string, address: string) =>
    throttle.attempt(token, address, () => cache.find(token)).finally(() => pending.delete(token))

  async function find(token: string, address: string): Promise<CallerSession> {
    if (organizationKeyOf(token) === undefined) return throwEnded()
    const lookingUp = pending.get(token) ?? lookUp(token, address)
    pending.set(token, lookingUp)
    return requireLive(await lookingUp)
  }

  const requireLive = (session: CachedSession | undefined): CallerSession =>
    session?.isLive && nowMs() < session.expiresAtMs ? session : throwEnded()

  return {
    /**
     * The session of a cookie's value, synchronously if it is cached. Throws a Fault `unauthorized` if there is no
     * session or it has ended, and `rate_limit_exceeded` after too many unknown values from one address.
     */
    authenticate: (token: string, address: string): CallerSession | Promise<CallerSession> => {
      const session = cache.peek(token)
      // The organization may have been deleted meanwhile.
      const isCached =
        session && organizations.peek(session.caller.organization.key)?.id === session.caller.organization.id
      return isCached ? requireLive(session) : find(token, address)
    },
    /** The organization id of a cached cookie's value. The session may have ended since. Runs no query. */
    cachedOrganizationId: (token: string) => cache.peek(token)?.caller.organization.id,
    /** Removes a revoked session from the cache of this process. */
    forget: (id: string): void => cache.removeWhere(session => session.id === id),
  }
}

function throwEnded(): never {
  return refuse('unauthorized', 'The session has ended. Sign in to the console again.', bearerChallenge)
}
