import { hash } from 'node:crypto'
import type { Static, TSchema } from 'typebox'
import { startSessionWithPassword } from '../auth/accounts.ts'
import { withRole } from '../auth/caller-role.ts'
import { verifyClient } from '../auth/clients.ts'
import { createLoginThrottle } from '../auth/login-throttle.ts'
import { createSignInIssuer } from '../auth/oidc.ts'
import { maxPasswordBytes, type Turn } from '../auth/passwords.ts'
import type { CallerSession } from '../auth/sessions.ts'
import { contextOf } from '../db/context.ts'
import { bind } from '../http/input/bind.ts'
import { isEncrypted, requirePublicHost, requireSameOrigin, sessionCookie } from '../http/input/browser.ts'
import { parseJson } from '../http/input/json.ts'
import { clientAddress } from '../http/input/request-head.ts'
import { compile } from '../http/input/validate.ts'
import { authenticateSession } from '../http/pipeline/authenticate.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import { success } from '../http/pipeline/reply.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import { version } from '../process/version.ts'
import type { Caller } from '../route/caller.ts'
import {
  clientIdentity,
  endSession,
  organizationKeyOf,
  type Session,
  type StartedSession,
  sessionSeconds,
  startSession,
  startSessionWithCode,
} from '../sessions/sessions.ts'
import { lookAlikeOf, organizationOf } from '../values/actor-names.ts'
import { Fault, refuse } from '../values/errors.ts'
import { closedObject, Type } from '../values/json-schema.ts'
import { registerIssuerRoutes, startPath } from './console-oidc.ts'
import { createSignInLog } from './sign-in-log.ts'

const path = '/console/session'

const credentials = closedObject({
  code: Type.Optional(Type.String({ maxLength: 200 })),
  client_id: Type.Optional(Type.String({ maxLength: 200 })),
  client_secret: Type.Optional(Type.String({ maxLength: 200 })),
  organization: Type.Optional(Type.String({ maxLength: 63 })),
  name: Type.Optional(Type.String({ maxLength: 255 })),
  password: Type.Optional(Type.String({ maxLength: maxPasswordBytes })),
})

type PasswordSignIn = { organization: string; name: string; password: string }
type SignIn = { code: string } | { client_id: string; client_secret: string } | PasswordSignIn

/** Returns functions for the session in the cookie of a request's browser. */
export function createBrowserSessions(services: Services) {
  const { db, authenticator, config, logger } = services
  const recordSignIn = createSignInLog(services)
  const sendCookie = (exchange: Exchange, token: string, maxAgeSeconds: number) =>
    exchange.setCookie(sessionCookie(token, { maxAgeSeconds, isSecure: isEncrypted(exchange.request, config) }))
  const remove = (exchange: Exchange) => sendCookie(exchange, '', 0)

  /**
   * The session of the cookie, or undefined without a cookie. Removes the cookie of an ended session from the browser,
   * unless another site has caused the request.
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
    // Another page may have ended the session meanwhile.
    await endSession(contextOf(db, caller.organization.id), id, deadline.signal)
    authenticator.sessions.forget(id)
  }

  /**
   * Ends the session whose cookie a new session replaces. A cookie that is no longer valid does not prevent a sign-in.
   */
  async function endPrevious(exchange: Exchange): Promise<void> {
    const previous = await find(exchange).catch(error => {
      if (!(error instanceof Fault)) throw error
    })
    if (previous) await end(exchange, previous)
  }

  /** Sends a new session, which replaces the browser's previous one. */
  async function begin(exchange: Exchange, { token, session, organization }: StartedSession): Promise<void> {
    await endPrevious(exchange)
    logger.info({ session: session.id, organization: organization.key }, 'a session of the console began')
    sendCookie(exchange, token, sessionSeconds)
    const signIn = { organization: organization.key, subject: session.name, status: 200 }
    await recordSignIn(exchange, { event: 'sign_in', ...signIn })
    await show(exchange, session, organization)
  }

  /** Sends a session with the scopes that it and its role both have, and the fields of the role unless it opens all. */
  async function show(exchange: Exchange, session: Session, { id, key }: Caller['organization']): Promise<void> {
    exchange.organization = key
    const context = contextOf(db.shareOf(id, 'reads'), id)
    const { role } = session
    const allowed = await withRole({ ...session, role: role ?? undefined }, context, {
      signal: exchange.deadline.signal,
    })
    const { id: session_id, name, scopes, rights, method, account_id, expires_at } = allowed
    const given = { scopes: [...scopes], role, fields: rights && !rights.isWhole ? rights.fields : null }
    const shown = { id: session_id, name, organization: { key }, ...given, method, account_id, expires_at, version }
    exchange.send(200, success({ data: shown }))
  }

  return { begin, show, remove, find, end }
}

/**
 * Adds the endpoints with which the console signs in and out. They set and clear the session cookie, and answer only
 * pages of the service itself. Their responses are in kith's envelopes.
 */
export function registerSessionRoutes(router: Router, services: Services): void {
  const { config, reads } = services
  const signIn = createSignIn(services)
  const sessions = createBrowserSessions(services)
  const recordSignIn = createSignInLog(services)
  router.add({
    method: 'POST',
    path,
    check: checkSignIn(services),
    handle: async (exchange, body) =>
      sessions.begin(exchange, await signIn(exchange, readCredentials(exchange, body, services))),
  })
  router.get(path, async exchange => {
    requirePublicHost(exchange.request, config)
    exchange.isRead = true
    const session = await sessions.find(exchange)
    // A page asks for the session before the sign-in. A refusal would appear as an error in the browser's console.
    if (!session) return exchange.send(200, success({ data: null }))
    const { caller, ...shown } = session
    const { subject: name, scopes, role = null, organization } = caller
    await sessions.show(exchange, { ...shown, name, scopes, role }, organization)
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

/**
 * Adds the data of the sign-in page, and the endpoints of a sign-in at the outside issuer if the configuration names
 * one.
 */
export function registerSignInMethods(router: Router, services: Services): void {
  const issuer = createSignInIssuer(services.config)
  const data = { client_credentials: true, issuer: issuer ? { name: issuer.name, start_url: startPath } : null }
  router.get('/console/sign-in-methods', exchange => {
    requirePublicHost(exchange.request, services.config)
    exchange.send(200, success({ data }))
  })
  if (issuer) registerIssuerRoutes(router, services, issuer)
}

/** The members of each kind of credentials. */
const kinds = [['code'], ['client_id', 'client_secret'], ['organization', 'name', 'password']]

const readSignIn = bodyReader(credentials)

function readCredentials(exchange: Exchange, body: Buffer | undefined, services: Services): SignIn {
  const given = readSignIn(exchange, body, services)
  const keys = Object.keys(given)
  const isKind = kinds.some(kind => kind.length === keys.length && kind.every(key => keys.includes(key)))
  if (isKind) return given as SignIn
  const ways = 'either code, or client_id and client_secret, or organization, name and password'
  return refuse('invalid_parameter', `Send ${ways}.`, { details: [{ path: '', message: `must have ${ways}` }] })
}

/**
 * Returns a function that reads the JSON body of a console endpoint. The query is ignored, because queries end up in
 * logs. Passwords are taken as typed, including white space at their ends.
 */
export function bodyReader<Schema extends TSchema>(schema: Schema) {
  /** The schema is compiled at the first request. */
  let validate: ReturnType<typeof compile> | undefined
  return ({ request }: Exchange, body: Buffer | undefined, { config: { limits } }: Services): Static<Schema> => {
    const input = { contentType: request.headers['content-type'], body, queryString: '' }
    const { value } = bind(input, { body: schema }, limits)
    validate ??= compile(schema)
    validate(value, 'body')
    const typed = parseJson(body!, limits) as Record<string, unknown>
    for (const key of Object.keys(value)) if (key.endsWith('password')) value[key] = typed[key]
    return value as Static<Schema>
  }
}

/**
 * Returns the check of an endpoint that starts or changes a session. Only a page of the service may send the request,
 * and only to a process that writes.
 */
export const checkSignIn =
  ({ config, reads }: Services) =>
  ({ request }: Exchange): void => {
    requireSameOrigin(request, config)
    if (reads.isReader) throwSignInElsewhere()
  }

/** Returns a function that starts a session for credentials. Failures are limited like those of token requests. */
function createSignIn(services: Services) {
  const { db, config } = services
  const attempt = createAttempts(config)
  const recordSignIn = createSignInLog(services)

  async function start(credentials: SignIn, turn: Turn): Promise<StartedSession | undefined> {
    const { signal } = turn
    if ('code' in credentials) return startSessionWithCode(db, credentials.code, signal)
    if ('password' in credentials) {
      const { organization: organizationKey, name, password } = credentials
      return startSessionWithPassword(db, { organizationKey, name, password }, turn)
    }
    const client = await verifyClient(db, credentials, signal)
    return client && startSession(db, client.organization, clientIdentity(client, credentials.client_id), signal)
  }

  return async (exchange: Exchange, credentials: SignIn): Promise<StartedSession> => {
    const started = await attempt(exchange, attemptOf(credentials), turn => start(credentials, turn))
    if (started) return started
    await recordSignIn(exchange, { event: 'sign_in_failed', ...claimedBy(credentials), status: 401 })
    return throwRefused(credentials)
  }
}

/**
 * The organization and the name that credentials claim. A code that is no longer stored still names its organization.
 */
function claimedBy(credentials: SignIn): { organization: string | undefined; subject: string } {
  if ('code' in credentials) return { organization: organizationKeyOf(credentials.code), subject: 'code' }
  if ('password' in credentials) return { organization: credentials.organization, subject: credentials.name }
  return { organization: organizationOf(credentials.client_id), subject: credentials.client_id }
}

/** The key for counting failed attempts, besides the address. All spellings of a name count as one. */
function attemptOf(credentials: SignIn): string {
  if ('code' in credentials) return 'code'
  return 'password' in credentials ? accountAttempt(credentials.organization, credentials.name) : credentials.client_id
}

export const accountAttempt = (organizationKey: string, name: string): string =>
  `account ${hash('sha256', `${organizationKey} ${lookAlikeOf(name)}`, 'base64url')}`

/** Returns a function that runs a request's attempt to authenticate, which counts as failed until it succeeds. */
export function createAttempts({ behindProxy }: Services['config']) {
  const throttle = createLoginThrottle()
  return <Result>({ request, deadline: { signal } }: Exchange, of: string, run: (turn: Turn) => Promise<Result>) => {
    const address = clientAddress(request, behindProxy)
    return throttle.attempt(of, address, () => run({ address, signal }))
  }
}

function throwRefused(credentials: SignIn): never {
  if ('code' in credentials)
    refuse('unauthorized', 'The link has expired or was used. Print a new one with kith console.')
  return 'password' in credentials
    ? refuse('unauthorized', 'There is no account with this name and password.')
    : refuse('unauthorized', 'The client is unknown or its secret is wrong.')
}

export const throwNoSession = (): never => refuse('unauthorized', 'There is no session. Sign in to the console.')

function throwSignInElsewhere(): never {
  refuse(
    'operation_failed',
    'This process only reads (KITH_ROLE=reader). Sign in and out at a process with the role primary.',
    { status: 503 },
  )
}
