import { Type } from 'typebox'
import { verifyClient } from '../../auth/clients.ts'
import { buildGrantRefusal, type GrantRefusal, readGrant, unknownClientRefusal } from '../../auth/grant.ts'
import { createLoginThrottle } from '../../auth/login-throttle.ts'
import { scopes } from '../../auth/scopes.ts'
import { fail } from '../../errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Services } from '../pipeline/pipeline.ts'
import type { OpenRoute } from '../pipeline/route.ts'
import { authorizationsOf } from '../pipeline/route-table.ts'
import type { Router } from '../pipeline/router.ts'
import { clientAddress } from '../server/server.ts'

/** Good for an hour: a program asks again, and what it is given needs no renewing. */
const ttlSeconds = 3_600
const bodyBytes = 16_384

const tokenRequest = Type.Object(
  {
    grant_type: Type.Literal('client_credentials'),
    scope: Type.Optional(
      Type.String({ description: `Of the client's own, separated by spaces; all of them where it is absent. ` }),
    ),
    client_id: Type.Optional(Type.String({ description: 'Unless the header Authorization says it.' })),
    client_secret: Type.Optional(Type.String({ description: 'Unless the header Authorization says it.' })),
  },
  {
    title: 'TokenRequest',
    additionalProperties: true,
    examples: [{ grant_type: 'client_credentials', scope: scopes.slice(0, 2).join(' ') }],
  },
)

const token = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    scope: Type.String(),
  },
  {
    title: 'Token',
    examples: [
      {
        access_token: 'eyJhbGciOi…',
        token_type: 'Bearer',
        expires_in: ttlSeconds,
        scope: scopes.slice(0, 2).join(' '),
      },
    ],
  },
)

const refusalOfOne = (words: GrantRefusal['error'][]) =>
  Type.Object(
    { error: Type.Enum(words), error_description: Type.String() },
    { examples: [{ error: words[0], error_description: unknownClientRefusal.error_description }] },
  )

export const tokenRow: OpenRoute = {
  method: 'POST',
  path: '/oauth/token',
  operationId: 'issueToken',
  summary: 'Fetch a token',
  description:
    'For clients made by `kith client create` (RFC 6749, `client_credentials`). The client says who it is by HTTP ' +
    'Basic, or in the body. After ten failures within a minute from one address it has to wait.',
  tag: 'System',
  request: { contentType: 'application/x-www-form-urlencoded', body: tokenRequest },
  answer: token,
  enveloped: false,
  ownRefusals: {
    400: {
      description: 'The request cannot be understood, or asks for more than the client may have (RFC 6749, 5.2).',
      answer: refusalOfOne(['invalid_request', 'invalid_scope', 'unsupported_grant_type']),
    },
    401: {
      description: 'The client is unknown or its secret is wrong (RFC 6749, 5.2).',
      answer: refusalOfOne(['invalid_client']),
    },
  },
  refusals: { 413: 'invalid_parameter', 429: 'rate_limit_exceeded', 503: 'operation_failed' },
}

/** POST /oauth/token. It speaks as RFC 6749 has it, success and its own refusals without our envelope. */
export function registerTokenRoute(places: Router, { db, authenticator, config }: Services): void {
  const attempts = createLoginThrottle()

  async function grant({ request, url, body, deadline }: Exchange): Promise<Granted | GrantRefusal> {
    const asked = readGrant({
      authorizations: authorizationsOf(request),
      contentType: request.headers['content-type'],
      queryString: url.split('?').slice(1).join('?'),
      body,
    })
    if ('error' in asked) return asked
    const { client_id } = asked.credentials
    const address = clientAddress(request, config.behindProxy)
    const waitSeconds = attempts.countAttempt(client_id, address)
    if (waitSeconds !== undefined) refuseForNow(waitSeconds)
    const takeBack = () => attempts.uncountAttempt(client_id, address)
    const client = await verifyClient(db, asked.credentials, deadline.signal).catch(error => {
      takeBack()
      throw error
    })
    if (!client) return unknownClientRefusal
    takeBack()
    const allowed = client.scope.split(' ')
    if (!asked.scope.every(word => allowed.includes(word)))
      return buildGrantRefusal('invalid_scope', `The client may have ${allowed.join(', ')}.`)
    const scope = (asked.scope.length > 0 ? asked.scope : allowed).join(' ')
    const { organizationKey } = client
    const wanted = { organizationKey, subject: client_id, client_id, scope, ttlSeconds }
    const access_token = await authenticator.issueToken(wanted, deadline.signal)
    return { access_token, token_type: 'Bearer', expires_in: ttlSeconds, scope }
  }

  places.add({
    method: 'POST',
    path: tokenRow.path,
    bodyBytes,
    handle: async exchange => {
      exchange.header('Pragma', 'no-cache')
      answer(exchange, await grant(exchange))
    },
  })
}

type Granted = { access_token: string; token_type: 'Bearer'; expires_in: number; scope: string }

function answer(exchange: Exchange, granted: Granted | GrantRefusal) {
  const isUnknown = 'error' in granted && granted.error === 'invalid_client'
  if (isUnknown) exchange.header('WWW-Authenticate', 'Basic realm="kith"')
  exchange.send('error' in granted ? (isUnknown ? 401 : 400) : 200, JSON.stringify(granted))
}

function refuseForNow(waitSeconds: number): never {
  fail('rate_limit_exceeded', 'There were too many wrong attempts: wait before the next.', {
    headers: { 'Retry-After': String(waitSeconds) },
  })
}
