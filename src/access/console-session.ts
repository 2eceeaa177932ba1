import { withRole } from '../auth/caller-role.ts'
import { verifyClient } from '../auth/clients.ts'
import { createLoginThrottle, throwThrottled } from '../auth/login-throttle.ts'
import { createSignInIssuer } from '../auth/oidc.ts'
import type { CallerSession } from '../auth/sessions.ts'
import { contextOf } from '../db/context.ts'
import { bind } from '../http/input/bind.ts'
import { isEncrypted, requirePublicHost, requireSameOrigin, sessionCookie } from '../http/input/browser.ts'
import { clientAddress } from '../http/input/request-head.ts'
import { compile } from '../http/input/validate.ts'
import { authenticateSession } from '../http/pipeline/authenticate.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import { success } from '../http/pipeline/reply.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import { version } from '../process/version.ts'
import {
  clientIdentity,
  endSession,
  organizationKeyOf,
  type StartedSession,
  sessionSeconds,
  startSession,
  startSessionWithCode,
} from '../sessions/sessions.ts'
import { organizationOf } from '../values/actor-names.ts'
import { Fault, refuse } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import { registerIssuerRoutes, startPath } from './console-oidc.ts'
import { createSignInLog } from './sign-in-log.ts'

const path = '/console/session'

const credentials = Type.Object(
  {
    code: Type.Optional(Type.String({ maxLength: 200 })),
    client_id: Type.Optional(Type.String({ maxLength: 200 })),
    client_secret: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
)

type SignIn = { code: string } | { client_id: string; client_secret: string }

/** Returns functions for the session that the browser of a request has in its cookie. */
function createBrowserSessions(services: Services) {
  const { db, authenticator, config } = services
  const sendCookie = (exchange: Exchange, token: string, maxAgeSeconds: number) =>
    exchange.setCookie(sessionCookie(token, { maxAgeSeconds, isSecure: isEncrypted(exchange.request, config) }))
  const set = (exchange: Exchange, token: string) => sendCookie(exchange, token, sessionSeconds)
  const remove = (exchange: Exchange) => sendCookie(exchange, '', 0)

  /**
   * The session of the cookie, or undefined without a cookie. The cookie of a session that has ended is removed from the browser, but
   * not that of a request which another site has caused.
   */
  async function find(exchange: Exchange): Promise<CallerSession | undefined> {
    try {
      return await authenticateSession(services, exchange)
    } catch (error) {
      if (error instanceof Fault && error.refusal.code === 'unauthorized') remove(exchange)
      throw error
    }
  }

  async function end({ deadline }: Exchange, { id, caller }: CallerSession): Promise<void> {
    // Another page may have ended it meanwhile.
    await endSession(contextOf(db, caller.organization.id), id, deadline.signal)
    authenticator.sessions.forget(id)
  }

  /** Ends the session whose cookie a new one replaces. A cookie that is not valid any more does not keep anybody from signing in. */
  async function endPrevious(exchange: Exchange): Promise<void> {
    const previous = await find(exchange).catch(error => {
      if (!(error instanceof Fault)) throw error
    })
    if (previous) await end(exchange, previous)
  }

  return { set, remove, find, end, endPrevious }
}

/**
 * Adds the endpoints with which the console signs in and out. They set and clear the cookie of the session, and only answer pages of
 * the service itself. Their responses are in kith's envelopes.
 */
export function registerSessionRoutes(router: Router, services: Services): void {
  const { config, db, logger, reads } = services
  const signIn = createSignIn(services)
  const sessions = createBrowserSessions(services)
  const recordSignIn = createSignInLog(services)
  router.add({
    method: 'POST',
    path,
    check: ({ request }) => {
      requireSameOrigin(request, config)
      if (reads.isReader) throwSignInElsewhere()
    },
    handle: async (exchange, body) => {
      const { token, session } = await signIn(exchange, readCredentials(exchange, body, services))
      await sessions.endPrevious(exchange)
      const key = organizationKeyOf(token)!
      logger.info({ session: session.id, organization: key }, 'a session of the console began')
      exchange.organization = key
      sessions.set(exchange, token)
      await recordSignIn(exchange, { event: 'sign_in', organization: key, subject: session.name, status: 200 })
      sendSession(exchange, { ...session, key })
    },
  })
  router.add({
    method: 'GET',
    path,
    handle: async exchange => {
      requirePublicHost(exchange.request, config)
      exchange.isRead = true
      const session = await sessions.find(exchange)
      // A page asks before anybody has signed in, and browsers report a refusal as an error of the page.
      if (!session) return exchange.send(200, success({ data: null }))
      const { id, expires_at } = session
      const { organization } = session.caller
      const context = contextOf(db.shareOf(organization.id, 'reads'), organization.id)
      const caller = await withRole(session.caller, context, exchange.deadline.signal)
      const { subject: name, scopes, role = null, rights } = caller
      exchange.organization = organization.key
      sendSession(exchange, {
        id,
        name,
        scopes,
        role,
        fields: rights?.fields ?? null,
        expires_at,
        key: organization.key,
      })
    },
  })
  router.add({
    method: 'DELETE',
    path,
    handle: async exchange => {
      if (reads.isReader) throwSignInElsewhere()
      const session = (await sessions.find(exchange)) ?? throwNoSession()
      await sessions.end(exchange, session)
      const { organization, subject } = session.caller
      await recordSignIn(exchange, { event: 'sign_out', organization: organization.key, subject, status: 200 })
      sessions.remove(exchange)
      exchange.send(200, success({ data: true }))
    },
  })
}

/** Adds what the sign-in page reads, and the endpoints of a sign-in at the outside issuer if the configuration names one. */
export function registerSignInMethods(router: Router, services: Services): void {
  const issuer = createSignInIssuer(services.config)
  const methods = { client_credentials: true, issuer: issuer ? { name: issuer.name, start_url: startPath } : null }
  router.add({
    method: 'GET',
    path: '/console/sign-in-methods',
    handle: exchange => {
      requirePublicHost(exchange.request, services.config)
      exchange.send(200, success({ data: methods }))
    },
  })
  if (issuer) registerIssuerRoutes(router, services, issuer)
}

type ShownSession = {
  id: string
  name: string
  scopes: ReadonlySet<string>
  role: string | null
  fields?: object | null
  expires_at: string
  key: string
}

function sendSession(exchange: Exchange, { id, name, scopes, role, fields = null, expires_at, key }: ShownSession) {
  const data = { id, name, organization: { key }, scopes: [...scopes], role, fields, expires_at, version }
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
function createSignIn(services: Services) {
  const { db, config } = services
  const throttle = createLoginThrottle()
  const recordSignIn = createSignInLog(services)

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
    if (!started) {
      // A code that is not stored any more still names its organization.
      const organization =
        'code' in credentials ? organizationKeyOf(credentials.code) : organizationOf(credentials.client_id)
      const subject = 'code' in credentials ? 'code' : credentials.client_id
      await recordSignIn(exchange, { event: 'sign_in_failed', organization, subject, status: 401 })
      return throwRefused(credentials)
    }
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
