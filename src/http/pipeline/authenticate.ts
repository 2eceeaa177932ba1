import { withRole } from '../../auth/caller-role.ts'
import type { CallerSession } from '../../auth/sessions.ts'
import { contextOf } from '../../db/context.ts'
import type { Caller } from '../../route/caller.ts'
import { bearerChallenge, type Scope } from '../../route/scopes.ts'
import { refuse } from '../../values/errors.ts'
import { readSessionCookies, requireSameOrigin } from '../input/browser.ts'
import { clientAddress } from '../input/request-head.ts'
import type { Exchange } from './exchange.ts'
import type { Services } from './services.ts'

type Authentication = Pick<Services, 'authenticator' | 'config'>

/**
 * Authenticates a request by its Authorization header, or without one by a session cookie. The result is synchronous
 * for a cached token or session, and a promise for a new one. A request with an Authorization header skips the work for
 * sessions.
 */
export function authenticate(services: Authentication, exchange: Exchange): Caller | Promise<Caller> {
  const authorizations = authorizationsOf(exchange)
  const session = authorizations.length === 0 ? authenticateSession(services, exchange) : undefined
  const { deadline, recalledToken } = exchange
  if (session === undefined) return services.authenticator.authenticate(authorizations, deadline.signal, recalledToken)
  return session instanceof Promise ? session.then(({ caller }) => caller) : session.caller
}

/**
 * As {@link authenticate}, restricted to the rights of the caller's role. The role is read, or with `cachedFor` taken
 * from the cache if that allows this scope. A caller without a role costs nothing more.
 */
export function authenticateWithRole(
  services: Pick<Services, 'authenticator' | 'config' | 'db'>,
  exchange: Exchange,
  cachedFor?: Scope,
): Caller | Promise<Caller> {
  const authenticated = authenticate(services, exchange)
  if (!(authenticated instanceof Promise) && authenticated.role === undefined) return authenticated
  return Promise.resolve(authenticated).then(caller => {
    const { id } = caller.organization
    const { signal } = exchange.deadline
    return withRole(caller, contextOf(services.db.shareOf(id, 'reads'), id), { signal, cachedFor })
  })
}

/**
 * The session of a request's cookie, or undefined without a cookie. Throws a Fault: `forbidden` if a page of another
 * site may have sent the request, `unauthorized` if the session has ended.
 */
export function authenticateSession(
  { authenticator, config }: Authentication,
  { request }: Exchange,
): CallerSession | Promise<CallerSession> | undefined {
  const tokens = readSessionCookies(request, config)
  const [token] = tokens
  if (token === undefined) return undefined
  requireSameOrigin(request, config)
  // Another site of the same domain may have set a second cookie. kith does not choose between them.
  if (tokens.length > 1)
    refuse(
      'unauthorized',
      'The request has several cookies of a session. Clear the cookies of this site and sign in again.',
      bearerChallenge,
    )
  return authenticator.sessions.authenticate(token, clientAddress(request, config.behindProxy))
}

const authorization = 'authorization'

/** Returns every Authorization header. Node's `headers` has only the first. */
export function authorizationsOf({ request: { rawHeaders: headers } }: Exchange): string[] {
  const found: string[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    if (name.length === authorization.length && name.toLowerCase() === authorization) found.push(headers[index + 1]!)
  }
  return found
}
