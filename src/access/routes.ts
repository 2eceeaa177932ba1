import { listAccounts, removeAccount } from '../auth/accounts.ts'
import { readClient, readClientPage, revokeClient } from '../auth/clients.ts'
import { readTokenPage, revokeToken } from '../auth/issued-tokens.ts'
import { listKeys } from '../auth/keys/keys.ts'
import {
  type AccessClientBody,
  type AccountBody,
  type AccountPatch,
  type ApiTokenBody,
  account,
  accountList,
  accountPatch,
  apiClient,
  apiClientPage,
  apiClientWithSecret,
  apiToken,
  type ClientsQuery,
  clientsQuery,
  invitedAccount,
  listedTokenPage,
  newAccount,
  newClient,
  newToken,
  signingKey,
  type TokensQuery,
  tokensQuery,
} from '../auth/schema.ts'
import { listSchema } from '../organizations/definition-schema.ts'
import { dataOf, doneOf, type Route, route } from '../route/route.ts'
import { sessionList } from '../sessions/schema.ts'
import { endSession, listSessions } from '../sessions/sessions.ts'
import { refuse } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import { authorOf, createApiAccount, inviteApiAccount, updateApiAccount } from './accounts.ts'
import { createApiClient, createApiToken } from './credentials.ts'

const tag = 'Access'
/** Members that the rows of credentials and sessions share. These rows neither show nor accept values of entities. */
const read = { method: 'GET', tag, scope: 'access:read', fields: 'none' } as const
const write = { tag, scope: 'access:write', fields: 'none' } as const
const clientsPath = '/v1/clients'
const byId = { path: `${clientsPath}/{client_id}`, params: { client_id: 'client_id' } } as const

/** The route table of clients, tokens, signing keys, and accounts and sessions of the console. */
export const accessRoutes = (): Route[] => [...clientRoutes(), ...tokenRoutes(), ...accountRoutes(), ...sessionRoutes()]

function clientRoutes(): Route[] {
  return [
    route<ClientsQuery>({
      ...read,
      path: clientsPath,
      operationId: 'listClients',
      summary: 'List the clients',
      description: 'The programs that fetch their own tokens, newest first, revoked ones included.',
      query: clientsQuery,
      answer: apiClientPage,
      handle: dataOf(({ context, body, signal }) => readClientPage(context, body, signal)),
    }),
    route<AccessClientBody>({
      method: 'POST',
      ...write,
      path: clientsPath,
      operationId: 'createClient',
      summary: 'Create a client',
      description:
        'The response shows the secret, once. A caller can grant only scopes that it has. kith stores no response with a secret, so an ' +
        'Idempotency-Key is ignored.',
      body: newClient,
      answer: apiClientWithSecret,
      successes: { 201: 'Created.' },
      showsSecret: true,
      securityEvent: 'client_created',
      handle: async call => {
        const data = await createApiClient(call)
        call.shown.target = data.client_id
        return { status: 201, data, headers: { Location: `${clientsPath}/${data.client_id}` } }
      },
    }),
    route({
      ...read,
      ...byId,
      operationId: 'getClient',
      summary: 'Read a client',
      answer: apiClient,
      handle: dataOf(({ context, params, signal }) => readClient(context, params.client_id!, signal)),
    }),
    route({
      method: 'DELETE',
      ...write,
      ...byId,
      operationId: 'revokeClient',
      summary: 'Revoke a client',
      description: 'It gets no more tokens, and its tokens are refused within ten seconds. The list keeps it.',
      answer: Type.Literal(true),
      securityEvent: 'client_revoked',
      handle: doneOf(({ context, caller, params }) =>
        revokeClient(context.db, params.client_id!, caller.organization.key),
      ),
    }),
  ]
}

function tokenRoutes(): Route[] {
  return [
    route<ApiTokenBody>({
      method: 'POST',
      ...write,
      path: '/v1/tokens',
      operationId: 'createToken',
      summary: 'Create a token',
      description:
        'The response shows the token, once. A caller can grant only scopes that it has. The token is valid until it expires or is ' +
        'revoked, until the client, session or token that made it ends, or until its signing key is revoked. No two callers that are valid ' +
        'have names that look alike. kith stores no response with a token, so an Idempotency-Key is ignored.',
      body: newToken,
      answer: apiToken,
      showsSecret: true,
      securityEvent: 'token_created',
      handle: async call => {
        const data = await createApiToken(call)
        call.shown.target = data.jti
        return { status: 200, data }
      },
    }),
    route<TokensQuery>({
      ...read,
      path: '/v1/tokens',
      operationId: 'listTokens',
      summary: 'List the tokens',
      description:
        'The tokens that callers and `kith token` made, newest first, with their last use. Those that clients fetch end with the client ' +
        'and are not listed. An expired token is listed for 30 days.',
      query: tokensQuery,
      answer: listedTokenPage,
      handle: dataOf(({ context, body, signal }) => readTokenPage(context, body, signal)),
    }),
    route({
      method: 'DELETE',
      ...write,
      path: '/v1/tokens/{jti}',
      params: { jti: 'uuid' },
      operationId: 'revokeToken',
      summary: 'Revoke a token',
      description: 'It and the tokens that were made with it are refused within ten seconds. The list keeps it.',
      answer: Type.Literal(true),
      securityEvent: 'token_revoked',
      handle: doneOf(({ context, params }) => revokeToken(context, params.jti!)),
    }),
    route({
      ...read,
      path: '/v1/keys',
      operationId: 'listKeys',
      summary: 'List the signing keys',
      description: 'The keys that sign the tokens of all organizations, newest first. Only what is public is shown.',
      answer: listSchema(signingKey),
      handle: dataOf(async ({ context: { db } }) => ({ items: await listKeys(db) })),
    }),
  ]
}

function accountRoutes(): Route[] {
  const path = '/v1/accounts'
  const one = { tag, path: `${path}/{account_id}`, params: { account_id: 'uuid' } } as const
  return [
    route({
      method: 'GET',
      tag,
      path,
      scope: 'access:read',
      operationId: 'listAccounts',
      summary: 'List the accounts',
      description: 'The people who sign in to the console with a password, newest first, at most 1,000.',
      answer: accountList,
      handle: dataOf(async ({ context, signal }) => ({ items: await listAccounts(context, signal) })),
    }),
    route<AccountBody>({
      method: 'POST',
      tag,
      path,
      scope: 'access:write',
      operationId: 'createAccount',
      securityEvent: 'account_created',
      summary: 'Create an account',
      description:
        'The response shows the link of an invitation, once. Who opens it sets the password. A caller can give only a role that has no more ' +
        'than itself. No two callers that are valid have names that look alike. kith stores no response with a link, so an Idempotency-Key is ' +
        'ignored.',
      body: newAccount,
      answer: invitedAccount,
      successes: { 201: 'Created.' },
      showsSecret: true,
      handle: async call => {
        const data = await createApiAccount(call)
        return { status: 201, data, headers: { Location: `${path}/${data.id}` } }
      },
    }),
    route<AccountPatch>({
      method: 'PATCH',
      ...one,
      scope: 'access:write',
      operationId: 'updateAccount',
      securityEvent: 'account_changed',
      summary: 'Change the role of an account, disable or enable it',
      description:
        'With another role, or disabled, its sessions end within ten seconds, and so does an invitation that nobody has accepted.',
      body: accountPatch,
      answer: account,
      handle: dataOf(updateApiAccount),
    }),
    route({
      method: 'DELETE',
      ...one,
      scope: 'access:write',
      operationId: 'removeAccount',
      securityEvent: 'account_removed',
      summary: 'Remove an account',
      description:
        'Its sessions end within ten seconds. Its name is free for somebody else then, so disable it instead if in doubt.',
      answer: Type.Literal(true),
      handle: doneOf(call => removeAccount(call.context, authorOf(call), call.params.account_id!)),
    }),
    route({
      method: 'POST',
      ...one,
      path: `${one.path}/invitation`,
      scope: 'access:write',
      operationId: 'inviteAccount',
      securityEvent: 'account_invited',
      summary: 'Make a new invitation',
      description:
        'For a link that was lost or has expired, and for a forgotten password. It replaces an earlier one. The password stays valid until ' +
        'somebody accepts the invitation.',
      answer: invitedAccount,
      showsSecret: true,
      handle: dataOf(inviteApiAccount),
    }),
  ]
}

function sessionRoutes(): Route[] {
  const path = '/v1/sessions'
  return [
    route({
      method: 'GET',
      tag,
      path,
      scope: 'access:read',
      fields: 'none',
      operationId: 'listSessions',
      summary: 'List the sessions of the console',
      description: 'The sessions that have not ended, newest first, at most 1,000.',
      answer: sessionList,
      handle: dataOf(async ({ context, signal }) => ({ items: await listSessions(context, signal) })),
    }),
    route({
      method: 'DELETE',
      ...write,
      path: `${path}/{session_id}`,
      params: { session_id: 'uuid' },
      operationId: 'revokeSession',
      summary: 'End a session of the console',
      description: 'Its cookie is refused within ten seconds.',
      answer: Type.Literal(true),
      securityEvent: 'session_revoked',
      handle: doneOf(async ({ context, params, signal }) => {
        if (!(await endSession(context, params.session_id!, signal)))
          refuse('not_found', 'The session does not exist or has ended.')
      }),
    }),
  ]
}
