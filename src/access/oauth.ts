import type { Static } from 'typebox'
import { verifyClient } from '../auth/clients.ts'
import { buildGrantRefusal, type GrantRefusal, readGrant, unknownClientRefusal } from '../auth/grant.ts'
import { createLoginThrottle } from '../auth/login-throttle.ts'
import { clientAddress } from '../http/input/request-head.ts'
import { authorizationsOf } from '../http/pipeline/authenticate.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import type { OpenRoute } from '../route/route.ts'
import { scopes } from '../route/scopes.ts'
import { organizationOf } from '../values/actor-names.ts'
import { Type } from '../values/json-schema.ts'
import { createSignInLog } from './sign-in-log.ts'

/** A token is valid for an hour. A client then requests a new one, so there are no refresh tokens. */
const ttlSeconds = 3_600

const exampleScope = scopes.slice(0, 2).join(' ')

const tokenRequest = Type.Object(
  {
    grant_type: Type.Literal('client_credentials'),
    scope: Type.Optional(
      Type.String({
        description: 'The requested scopes, separated by spaces. The default is all scopes of the client.',
      }),
    ),
    client_id: Type.Optional(Type.String({ description: 'Required without an Authorization header.' })),
    client_secret: Type.Optional(Type.String({ description: 'Required without an Authorization header.' })),
  },
  {
    title: 'TokenRequest',
    additionalProperties: true,
    examples: [{ grant_type: 'client_credentials', scope: exampleScope }],
  },
)

const token = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Integer({ description: 'The lifetime in seconds.' }),
    scope: Type.String(),
  },
  {
    title: 'Token',
    examples: [{ access_token: 'eyJhbGciOi…', token_type: 'Bearer', expires_in: ttlSeconds, scope: exampleScope }],
  },
)

const refusalSchema = (title: string, words: GrantRefusal['error'][]) =>
  Type.Object(
    { error: Type.Enum(words), error_description: Type.String() },
    { title, examples: [{ error: words[0], error_description: unknownClientRefusal.error_description }] },
  )

export const tokenRow: OpenRoute = {
  method: 'POST',
  path: '/oauth/token',
  operationId: 'issueToken',
  summary: 'Fetch a token',
  description:
    'For clients created by `kith client create` (RFC 6749, `client_credentials`). The client authenticates by HTTP Basic ' +
    'or in the body. After ten failures within a minute from one address, it has to wait.',
  tag: 'System',
  request: { contentType: 'application/x-www-form-urlencoded', body: tokenRequest },
  answer: token,
  enveloped: false,
  ownRefusals: {
    400: {
      description: 'The request is malformed, or requests a scope that the client does not have (RFC 6749, 5.2).',
      answer: refusalSchema('TokenRefusal', ['invalid_request', 'invalid_scope', 'unsupported_grant_type']),
    },
    401: {
      description: 'The client is unknown, or its secret is wrong (RFC 6749, 5.2).',
      answer: refusalSchema('ClientRefusal', ['invalid_client']),
    },
  },
  refusals: { 413: 'invalid_parameter', 429: 'rate_limit_exceeded', 503: 'operation_failed' },
}

/** Adds POST /oauth/token. As RFC 6749 requires, its responses do not use kith's envelopes. */
export function registerTokenRoute(router: Router, services: Services): void {
  const { db, authenticator, config } = services
  const throttle = createLoginThrottle()
  const recordSignIn = createSignInLog(services)

  async function grant(exchange: Exchange, body: Buffer | undefined): Promise<Granted | GrantRefusal> {
    const { request, url, deadline } = exchange
    const requested = readGrant({
      authorizations: authorizationsOf(exchange),
      contentType: request.headers['content-type'],
      queryString: url.split('?').slice(1).join('?'),
      body,
    })
    if ('error' in requested) return requested
    const { client_id } = requested.credentials
    const client = await throttle.attempt(client_id, clientAddress(request, config.behindProxy), () =>
      verifyClient(db, requested.credentials, deadline.signal),
    )
    if (!client) {
      const organization = organizationOf(client_id)
      await recordSignIn(exchange, { event: 'sign_in_failed', organization, subject: client_id, status: 401 })
      return unknownClientRefusal
    }
    const allowed = client.scope.split(' ')
    if (!requested.scope.every(word => allowed.includes(word)))
      return buildGrantRefusal('invalid_scope', `The client is limited to these scopes: ${allowed.join(', ')}.`)
    const scope = (requested.scope.length > 0 ? requested.scope : allowed).join(' ')
    const { key: organizationKey } = client.organization
    const role = client.role ?? undefined
    const claims = { organizationKey, subject: client_id, client_id, scope, role, ttlSeconds }
    const access_token = await authenticator.issueToken(claims, deadline.signal)
    await recordSignIn(exchange, { event: 'sign_in', organization: organizationKey, subject: client_id, status: 200 })
    return { access_token, token_type: 'Bearer', expires_in: ttlSeconds, scope }
  }

  router.add({
    method: 'POST',
    path: tokenRow.path,
    handle: async (exchange, body) => {
      exchange.header('Pragma', 'no-cache')
      sendGrant(exchange, await grant(exchange, body))
    },
  })
}

type Granted = Static<typeof token>

function sendGrant(exchange: Exchange, result: Granted | GrantRefusal) {
  const isUnknown = 'error' in result && result.error === 'invalid_client'
  if (isUnknown) exchange.header('WWW-Authenticate', 'Basic realm="kith"')
  exchange.send('error' in result ? (isUnknown ? 401 : 400) : 200, JSON.stringify(result))
}
