import { verifyClient } from '../../auth/clients.ts'
import { createLoginThrottle, throwThrottled } from '../../auth/login-throttle.ts'
import { createSignInIssuer } from '../../auth/oidc.ts'
import type { CallerSession } from '../../auth/sessions.ts'
import { Fault, refuse } from '../../errors.ts'
import { Type } from '../../json-schema.ts'
import {
  clientIdentity,
  endSession,
  organizationKeyOf,
  type StartedSession,
  sessionSeconds,
  startSession,
  startSessionWithCode,
} from '../../sessions/sessions.ts'
import { version } from '../../version.ts'
import { bind } from '../input/bind.ts'
import { isEncrypted, requireSameOrigin } from '../input/origin.ts'
import { sessionCookie } from '../input/session-cookie.ts'
import { compile } from '../input/validate.ts'
import { authenticateSession } from '../pipeline/authenticate.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Services } from '../pipeline/pipeline.ts'
import { success } from '../pipeline/reply.ts'
import type { Router } from '../pipeline/router.ts'
import { clientAddress } from '../server/server.ts'
import { registerIssuerRoutes, startPath } from './console-oidc.ts'

const path = '/console/session'
const bodyBytes = 16_384

const credentials = Type.Object(
  {
    code: Type.Optional(Type.String({ maxLength: 200 })),
    client_id: Type.Optional(Type.String({ maxLength: 200 })),
    client_secret: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
)

type SignIn = { code: string } | { client_id: string; client_secret: string }

/**
 * Adds the endpoints with which the console signs in and out. They set and clear the cookie of the session, and only answer pages of
 * the service itself. Their responses are in kith's envelopes.
 */
export function registerSessionRoutes(router: Router, services: Services): void {
  const { db, authenticator, config, logger } = services
  const signIn = createSignIn(services)
  const cookie = ({ request }: Exchange, token: string, maxAgeSeconds: number) =>
    sessionCookie(token, { maxAgeSeconds, isSecure: isEncrypted(request, config) })

  const removeCookie = (exchange: Exchange) => exchange.header('Set-Cookie', cookie(exchange, '', 0))

  /**
   * The session of the cookie, or undefined without a cookie. The cookie of a session that has ended is removed from the browser, but
   * not that of a request which another site has caused.
   */
  async function findSession(exchange: Exchange): Promise<CallerSession | undefined> {
    try {
      return await authenticateSession(services, exchange)
    } catch (error) {
      if (error instanceof Fault && error.refusal.code === 'unauthorized') removeCookie(exchange)
      throw error
    }
  }

  const end = async ({ deadline }: Exchange, { id, caller }: CallerSession) => {
    // Another page may have ended it meanwhile.
    await endSession(db, caller.organization.id, id, deadline.signal)
    authenticator.sessions.forget(id)
  }

  /** Ends the session whose cookie a new one replaces. A cookie that is not valid any more does not keep anybody from signing in. */
  async function endPrevious(exchange: Exchange): Promise<void> {
    const previous = await findSession(exchange).catch(error => {
      if (!(error instanceof Fault)) throw error
    })
    if (previous) await end(exchange, previous)
  }

  router.add({
    method: 'POST',
    path,
    bodyBytes,
    guard: ({ request }) => {
      requireSameOrigin(request, config)
      if (services.reads.isReader) throwSignInElsewhere()
      return async (exchange, body) => {
        const { token, session } = await signIn(exchange, readCredentials(exchange, body, services))
        await endPrevious(exchange)
        const key = organizationKeyOf(token)!
        logger.info({ session: session.id, organization: key }, 'a session of the console began')
        exchange.organization = key
        exchange.header('Set-Cookie', cookie(exchange, token, sessionSeconds))
        sendSession(exchange, { ...session, key })
      }
    },
  })
  router.add({
    method: 'GET',
    path,
    handle: async exchange => {
      exchange.isRead = true
      const session = await findSession(exchange)
      // A page asks before anybody has signed in, and browsers report a refusal as an error of the page.
      if (!session) return exchange.send(200, success({ data: null }))
      const { id, caller, expires_at } = session
      const { organization, subject: name, scopes } = caller
      exchange.organization = organization.key
      sendSession(exchange, { id, name, scopes, expires_at, key: organization.key })
    },
  })
  router.add({
    method: 'DELETE',
    path,
    handle: async exchange => {
      if (services.reads.isReader) throwSignInElsewhere()
      await end(exchange, (await findSession(exchange)) ?? throwNoSession())
      removeCookie(exchange)
      exchange.send(200, success({ data: true }))
    },
  })
  const issuer = createSignInIssuer(config)
  const methods = { client_credentials: true, issuer: issuer ? { name: issuer.name, start_url: startPath } : null }
  router.add({
    method: 'GET',
    path: '/console/sign-in-methods',
    handle: exchange => exchange.send(200, success({ data: methods })),
  })
  if (issuer) registerIssuerRoutes(router, services, issuer)
}

type ShownSession = { id: string; name: string; scopes: ReadonlySet<string>; expires_at: string; key: string }

function sendSession(exchange: Exchange, { id, name, scopes, expires_at, key }: ShownSession) {
  const data = { id, name, organization: { key }, scopes: [...scopes], expires_at, version }
  exchange.send(200, success({ data }))
}

/** Compiled at the first sign-in. */
let validate: ReturnType<typeof compile> | undefined

/** The credentials of the body. The query is ignored, because it ends up in logs. */
function readCredentials({ request }: Exchange, body: Buffer | undefined, { config }: Services): SignIn {
  const input = { contentType: request.headers['content-type'], body, queryString: '' }
  const { value } = bind(input, { body: credentials }, config.limits)
  validate ??= compile(credentials)
  validate(value, 'body')
  const { code, client_id, client_secret } = value as Partial<Record<'code' | 'client_id' | 'client_secret', string>>
  if (code !== undefined && client_id === undefined && client_secret === undefined) return { code }
  if (code === undefined && client_id !== undefined && client_secret !== undefined) return { client_id, client_secret }
  return refuse('invalid_parameter', 'Send either the code of a link, or client_id and client_secret.', {
    details: [{ path: '', message: 'must have either code, or client_id and client_secret' }],
  })
}

/** Returns a function that starts a session for credentials. Failures are limited as those of token requests. */
function createSignIn({ db, config }: Services) {
  const throttle = createLoginThrottle()

  async function start(credentials: SignIn, { deadline: { signal } }: Exchange): Promise<StartedSession | undefined> {
    if ('code' in credentials) return startSessionWithCode(db, credentials.code, signal)
    const client = await verifyClient(db, credentials, signal)
    return client && startSession(db, client.organization, clientIdentity(client, credentials.client_id), signal)
  }

  return async (exchange: Exchange, credentials: SignIn): Promise<StartedSession> => {
    const attempt = 'code' in credentials ? 'code' : credentials.client_id
    const address = clientAddress(exchange.request, config.behindProxy)
    const waitSeconds = throttle.countAttempt(attempt, address)
    if (waitSeconds !== undefined) throwThrottled(waitSeconds)
    const uncount = () => throttle.uncountAttempt(attempt, address)
    const started = await start(credentials, exchange).catch(error => {
      uncount()
      throw error
    })
    if (!started) return throwRefused(credentials)
    uncount()
    return started
  }
}

function throwRefused(credentials: SignIn): never {
  return 'code' in credentials
    ? refuse('unauthorized', 'The link has expired or was used. Print a new one with kith console.')
    : refuse('unauthorized', 'The client is unknown or its secret is wrong.')
}

const throwNoSession = (): never => refuse('unauthorized', 'There is no session. Sign in to the console.')

function throwSignInElsewhere(): never {
  refuse(
    'operation_failed',
    'This process only reads (KITH_ROLE=reader). Sign in and out at a process with the role primary.',
    { status: 503 },
  )
}
