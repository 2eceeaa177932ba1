import type { Static } from 'typebox'
import { scopes } from '../route/scopes.ts'
import { closedObject, nullable, Type } from '../values/json-schema.ts'

/** A scope of a token. */
const scope = Type.Enum([...scopes], { title: 'Scope', description: 'A scope of a token.' })
const grantedScopes = Type.Array(scope)
const requestedScopes = Type.Array(scope, {
  minItems: 1,
  maxItems: scopes.length,
  description: 'The scopes to grant. The caller must have each of them.',
})
const requestedRole = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 63,
    description:
      'The key of a role. A caller with a role gives its own, and no other. Without one, the scopes alone decide.',
  }),
)
const shownRole = nullable(
  Type.String({ description: 'The key of its role. Null: it has none, so its scopes alone decide.' }),
)
const moment = Type.String({ format: 'date-time' })
const at = '2026-01-01T12:00:00.000Z'

/** Body of POST /v1/clients. */
export const newClient = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 255, description: 'A name for people to read.' }),
    scopes: requestedScopes,
    role: requestedRole,
  },
  {
    additionalProperties: false,
    title: 'AccessClientBody',
    examples: [{ name: 'Example', scopes: ['people:read'] }],
  },
)
export type AccessClientBody = Static<typeof newClient>

const shownClient = {
  client_id: Type.String({ description: 'Identifies the client. It names the organization, and is no secret.' }),
  name: Type.String(),
  scopes: grantedScopes,
  role: shownRole,
  created_at: moment,
  revoked_at: nullable(
    Type.String({ format: 'date-time', description: 'When the client was revoked. Null while it gets tokens.' }),
  ),
}
const exampleClient = {
  client_id: 'default.Zm9vYmFyYmF6cXV4',
  name: 'Shop',
  scopes: ['people:read'],
  role: null,
  created_at: at,
  revoked_at: null,
}

/** A program that fetches its own tokens, as a read shows it, without its secret. */
export const apiClient = Type.Object(shownClient, {
  title: 'AccessClient',
  description: 'A program that fetches its own tokens.',
  examples: [exampleClient],
})
export type AccessClientShape = Static<typeof apiClient>

/** A client with the secret that was just made. No read shows it again. */
export const apiClientWithSecret = Type.Object(
  {
    ...shownClient,
    client_secret: Type.String({ description: 'The secret of the client. It is shown only this once.' }),
  },
  {
    title: 'AccessClientWithSecret',
    description: 'A client with the secret that was just made.',
    examples: [{ ...exampleClient, client_secret: 'dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldCBvZiBraXRo' }],
  },
)

const pageLimit = Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: 'The default is 50.' }))

/** Query of GET /v1/clients. */
export const clientsQuery = closedObject({
  before: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Only clients after this one in the list: a client_id.',
    }),
  ),
  limit: pageLimit,
})
export type ClientsQuery = Static<typeof clientsQuery>

export const apiClientPage = Type.Object(
  { items: Type.Array(apiClient), has_more: Type.Boolean() },
  { title: 'AccessClientPage', examples: [{ items: [exampleClient], has_more: false }] },
)

/** The public part of a signing key of the service. */
export const signingKey = Type.Object(
  {
    kid: Type.String({ description: 'The name of the key, as in the header of a token: its RFC 7638 thumbprint.' }),
    algorithm: Type.String(),
    created_at: moment,
    state: Type.Enum(['signs', 'verifies', 'expired'], {
      description:
        '`signs`: the key that signs new tokens. `verifies`: tokens that it signed are still valid. `expired`: all of them have expired.',
    }),
    verifies_until: nullable(
      Type.String({
        format: 'date-time',
        description: 'Until when an older key verifies tokens. Null for the signing key.',
      }),
    ),
  },
  {
    title: 'SigningKey',
    description: 'The public part of a key that signs tokens.',
    examples: [
      {
        kid: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs',
        algorithm: 'ES256',
        created_at: at,
        state: 'signs',
        verifies_until: null,
      },
    ],
  },
)
export type SigningKeyShape = Static<typeof signingKey>

/** The maximum lifetime of a token of POST /v1/tokens: 366 days. `kith token` makes tokens for longer. */
const maxTokenSeconds = 366 * 86_400

/** Body of POST /v1/tokens. */
export const newToken = Type.Object(
  {
    scopes: requestedScopes,
    role: requestedRole,
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'The subject, which the change log names as the actor. The default is the subject of the caller.',
      }),
    ),
    expires_in: Type.Integer({
      minimum: 1,
      maximum: maxTokenSeconds,
      description:
        'The lifetime in seconds, at most 366 days, and at most as long as the session or the token that makes it.',
    }),
  },
  {
    additionalProperties: false,
    title: 'ApiTokenBody',
    examples: [{ scopes: ['people:read'], expires_in: 60 }],
  },
)
export type ApiTokenBody = Static<typeof newToken>

const exampleJti = '8f7b6a2e-3c4d-4e5f-9a0b-1c2d3e4f5a6b'

/** A token that was just made. Nothing shows it again. */
export const apiToken = Type.Object(
  {
    token: Type.String({ description: 'The token, for the header Authorization. It is shown only this once.' }),
    jti: Type.String({ format: 'uuid', description: 'Its id in the list of tokens.' }),
    name: Type.String(),
    scopes: grantedScopes,
    role: shownRole,
    expires_at: moment,
  },
  {
    title: 'ApiToken',
    description: 'A token that was just made.',
    examples: [
      { token: 'eyJhbGciOi…', jti: exampleJti, name: 'reports', scopes: ['people:read'], role: null, expires_at: at },
    ],
  },
)
export type ApiTokenShape = Static<typeof apiToken>

/** Query of GET /v1/tokens. */
export const tokensQuery = closedObject({
  before: Type.Optional(
    Type.String({ format: 'uuid', description: 'Only tokens after this one in the list: the jti of a token.' }),
  ),
  limit: pageLimit,
})
export type TokensQuery = Static<typeof tokensQuery>

const exampleListed = {
  jti: exampleJti,
  name: 'reports',
  scopes: ['people:read'],
  role: null,
  maker: 'admin',
  created_at: at,
  expires_at: at,
  last_used_at: null,
  revoked_at: null,
}

/** A token as a read shows it, which nobody can use. */
export const listedToken = Type.Object(
  {
    jti: Type.String({ format: 'uuid', description: 'The id of the token.' }),
    name: Type.String({ description: 'The subject, which the change log names as the actor.' }),
    scopes: grantedScopes,
    role: shownRole,
    maker: Type.String({ description: 'The actor that made it. `cli` for the command line on the database.' }),
    created_at: moment,
    expires_at: moment,
    last_used_at: nullable(
      Type.String({ format: 'date-time', description: 'The newest minute in which it was used. Null for never.' }),
    ),
    revoked_at: nullable(Type.String({ format: 'date-time', description: 'When it was revoked. Null if it was not.' })),
  },
  {
    title: 'ListedToken',
    description: 'A token that somebody made.',
    examples: [exampleListed],
  },
)
export type ListedTokenShape = Static<typeof listedToken>

export const listedTokenPage = Type.Object(
  { items: Type.Array(listedToken), has_more: Type.Boolean() },
  { title: 'ListedTokenPage', examples: [{ items: [exampleListed], has_more: false }] },
)
