import type { CallerSession } from '../../auth/sessions.ts'
import { refuse } from '../../errors.ts'
import type { Caller } from '../../route/caller.ts'
import { requireSameOrigin } from '../input/origin.ts'
import { readSessionCookies } from '../input/session-cookie.ts'
import { clientAddress } from '../server/server.ts'
import type { Exchange } from './exchange.ts'
import type { Services } from './services.ts'

type Authentication = Pick<Services, 'authenticator' | 'config'>

/**
 * Authenticates a request by its Authorization header, or without one by the cookie of a session. The result is synchronous for a
 * cached token or session and a promise for a new one. A request with an Authorization header does no work for sessions.
 */
export function authenticate(services: Authentication, exchange: Exchange): Caller | Promise<Caller> {
  const authorizations = authorizationsOf(exchange)
  const session = authorizations.length === 0 ? authenticateSession(services, exchange) : undefined
  if (session === undefined) return services.authenticator.authenticate(authorizations, exchange.deadline.signal)
  return session instanceof Promise ? session.then(({ caller }) => caller) : session.caller
}

/**
 * The session of a request's cookie; undefined without a cookie. Throws a Fault: `forbidden` if a page of another site may have sent
 * the request, `unauthorized` if the session has ended.
 */
export function authenticateSession(
  { authenticator, config }: Authentication,
  { request }: Exchange,
): CallerSession | Promise<CallerSession> | undefined {
  const tokens = readSessionCookies(request.headers.cookie)
  const [token] = tokens
  if (token === undefined) return undefined
  requireSameOrigin(request, config)
  if (tokens.length > 1) throwSentTwice()
  return authenticator.sessions.authenticate(token, clientAddress(request, config.behindProxy))
}

/** Another site of the same domain may have set a second cookie. kith does not choose between them. */
function throwSentTwice(): never {
  refuse(
    'unauthorized',
    'The request has several cookies of a session. Clear the cookies of this site and sign in again.',
    {
      headers: { 'WWW-Authenticate': 'Bearer realm="kith"' },
    },
  )
}

const authorization = 'authorization'

/**
 * Returns every Authorization header. Node's `headers` has only the first. If a header equals that of the connection's
 * previous request, this returns the earlier string object: V8 has its hash already, which saves 1 µs.
 */
export function authorizationsOf({ connection, request }: Exchange): string[] {
  const { rawHeaders: headers } = request
  const previous = connection.credential
  const found: string[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!
    if (name.length !== authorization.length || name.toLowerCase() !== authorization) continue
    const text = headers[index + 1]!
    found.push(text === previous ? previous : text)
  }
  return found
}
