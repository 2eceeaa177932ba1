import type { Static, TSchema } from 'typebox'
import { listSchema } from '../organizations/definition-schema.ts'
import { scopes } from '../route/scopes.ts'
import { closedObject, nullable, Type, text, time, uuid } from '../values/json-schema.ts'

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
const shownRole = nullable(text('The key of its role. Null: it has none, so its scopes alone decide.'))
const at = '2026-01-01T12:00:00.000Z'

/** Body of POST /v1/clients. */
export const newClient = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 255, description: 'A name for people to read.' }),
    scopes: requestedScopes,
    role: requestedRole,
  },
  { additionalProperties: false, title: 'AccessClientBody', examples: [{ name: 'Example', scopes: ['people:read'] }] },
)
export type AccessClientBody = Static<typeof newClient>

const shownClient = {
  client_id: text('Identifies the client. It names the organization, and is no secret.'),
  name: text(),
  scopes: grantedScopes,
  role: shownRole,
  created_at: time(),
  revoked_at: nullable(time('When the client was revoked. Null while it gets tokens.')),
}
const exampleClient = {
  client_id: 'default.Zm9vYmFyYmF6cXV4',
  name: 'Shop',
  scopes: ['people:read'],
  role: null,
  created_at: at,
  revoked_at: null,
}

/** A program that fetches its own tokens, without its secret. */
export const apiClient = Type.Object(shownClient, {
  title: 'AccessClient',
  description: 'A program that fetches its own tokens.',
  examples: [exampleClient],
})
export type Client = Static<typeof apiClient>

/** A client with a new secret. No read shows the secret again. */
export const apiClientWithSecret = Type.Object(
  { ...shownClient, client_secret: text('The secret of the client. It is shown only this once.') },
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
    Type.String({ minLength: 1, maxLength: 255, description: 'Only clients after this one in the list: a client_id.' }),
  ),
  limit: pageLimit,
})
export type ClientsQuery = Static<typeof clientsQuery>

const pageSchema = (item: TSchema, title: string, example: object) =>
  Type.Object(
    { items: Type.Array(item), has_more: Type.Boolean() },
    { title, examples: [{ items: [example], has_more: false }] },
  )

export const apiClientPage = pageSchema(apiClient, 'AccessClientPage', exampleClient)

/** The public part of a signing key of the service. */
export const signingKey = Type.Object(
  {
    kid: text('The name of the key, as in the header of a token: its RFC 7638 thumbprint.'),
    algorithm: text(),
    created_at: time(),
    state: Type.Enum(['signs', 'verifies', 'expired'], {
      description:
        '`signs`: the key that signs new tokens. `verifies`: tokens that it signed are still valid. `expired`: all of them have expired.',
    }),
    verifies_until: nullable(time('Until when an older key verifies tokens. Null for the signing key.')),
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
export type ListedKey = Static<typeof signingKey>

/**
 * The maximum lifetime of a token of POST /v1/tokens: 366 days. `kith token` can make tokens with a longer lifetime.
 */
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
  { additionalProperties: false, title: 'ApiTokenBody', examples: [{ scopes: ['people:read'], expires_in: 60 }] },
)
export type ApiTokenBody = Static<typeof newToken>

const exampleJti = '8f7b6a2e-3c4d-4e5f-9a0b-1c2d3e4f5a6b'

/** A new token. No read shows it again. */
export const apiToken = Type.Object(
  {
    token: text('The token, for the header Authorization. It is shown only this once.'),
    jti: uuid('Its id in the list of tokens.'),
    name: text(),
    scopes: grantedScopes,
    role: shownRole,
    expires_at: time(),
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
  before: Type.Optional(uuid('Only tokens after this one in the list: the jti of a token.')),
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

const maker = text('The actor that made it. `cli` for the command line on the database.')

/** A token in a list, without its secret text. */
const listedToken = Type.Object(
  {
    jti: uuid('The id of the token.'),
    name: text('The subject, which the change log names as the actor.'),
    scopes: grantedScopes,
    role: shownRole,
    maker,
    created_at: time(),
    expires_at: time(),
    last_used_at: nullable(time('The newest minute in which it was used. Null for never.')),
    revoked_at: nullable(time('When it was revoked. Null if it was not.')),
  },
  { title: 'ListedToken', description: 'A token that somebody made.', examples: [exampleListed] },
)
export type ListedToken = Static<typeof listedToken>

export const listedTokenPage = pageSchema(listedToken, 'ListedTokenPage', exampleListed)

const accountRole = nullable(
  Type.String({
    minLength: 1,
    maxLength: 63,
    description: 'The key of the role of its sessions. Null: all scopes of the console.',
  }),
)

/** Body of POST /v1/accounts. */
export const newAccount = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'The name for the sign-in, and the actor in the change log. It cannot be changed.',
    }),
    role: accountRole,
  },
  { additionalProperties: false, title: 'AccountBody', examples: [{ name: 'Ada Lovelace', role: null }] },
)
export type AccountBody = Static<typeof newAccount>

/** Body of PATCH /v1/accounts/{account_id}. */
export const accountPatch = Type.Object(
  {
    role: Type.Optional(accountRole),
    state: Type.Optional(
      Type.Enum(['active', 'disabled'], { description: '`disabled`: nobody signs in, and the sessions end.' }),
    ),
  },
  { additionalProperties: false, minProperties: 1, title: 'AccountPatch', examples: [{ role: null }] },
)
export type AccountPatch = Static<typeof accountPatch>

const shownAccount = {
  id: uuid(),
  name: text(),
  role: accountRole,
  state: Type.Enum(['invited', 'active', 'disabled'], {
    description: '`invited`: nobody has accepted an invitation yet, so there is no password.',
  }),
  maker,
  created_at: time(),
  last_sign_in_at: nullable(time('When somebody last signed in. Null for never.')),
  invitation_expires_at: nullable(time('The end of an invitation that nobody has accepted. Null if there is none.')),
}
const exampleAccount = {
  id: '5b0c7f0e-4a3d-4c1e-8f57-6d1f0b2a9c11',
  name: 'Ada Lovelace',
  role: null,
  state: 'invited',
  maker: 'operator',
  created_at: at,
  last_sign_in_at: null,
  invitation_expires_at: '2026-01-04T12:00:00.000Z',
}

export const account = Type.Object(shownAccount, {
  title: 'Account',
  description: 'A person who signs in to the console with a password.',
  examples: [exampleAccount],
})
export type Account = Static<typeof account>

export const accountList = listSchema(account)

/** An account with a new invitation. No read shows the invitation again, and the code in its link is not stored. */
export const invitedAccount = Type.Object(
  {
    ...shownAccount,
    invitation_path: text(
      'The link to accept the invitation: put the address of the service before it. It works once, for three days, and is shown only ' +
        'this once.',
    ),
  },
  {
    title: 'InvitedAccount',
    description: 'An account with the invitation that was just made.',
    examples: [
      {
        ...exampleAccount,
        invitation_path: '/console/invitation#code=default.dGhpcyBpcyBub3QgYSByZWFsIGNvZGUgb2Yga2l0aA',
      },
    ],
  },
)
export type InvitedAccount = Static<typeof invitedAccount>
