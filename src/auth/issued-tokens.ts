import { randomUUID } from 'node:crypto'
import type { Context, Within } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { type Author, changeOrganization } from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import type { Credential } from '../route/caller.ts'
import { listPage } from '../route/result.ts'
import { lookAlikeOf } from '../values/actor-names.ts'
import { createValueRefusal, Fault, refuse } from '../values/errors.ts'
import { requireRole } from './caller-role.ts'
import type { ListedToken, TokensQuery } from './schema.ts'
import { issueToken, type TokenRequest } from './token.ts'
import {
  deleteExpiredTokensSql,
  insertTokenSql,
  markTokensUsedSql,
  readNamesInUseSql,
  readTokenPageSql,
  revokeTokenSql,
} from './tokens-sql.ts'

type MakeCall = Author & { signal?: Signal }

/**
 * Makes a listed token. Its maker is the author of the call. It ends with `parents`, with which the caller ends too.
 * Throws a Fault of 400 as {@link issueToken} does, and if its name equals or resembles the name of another valid
 * client, session or token, because a reader of the log could confuse the two. A maker may have several tokens of one
 * name, and may use its own name.
 */
export async function makeListedToken(
  context: Context,
  call: MakeCall,
  { parents, ...request }: Omit<TokenRequest, keyof Credential> & { parents?: Credential },
): Promise<{ token: string; jti: string; expires_at: string }> {
  if (request.role !== undefined) await requireRole(context, request.role, call.signal)
  const nowMs = Date.now()
  const jti = randomUUID()
  const { client_id, session_id, budget } = parents ?? {}
  const claims = { ...request, client_id, session_id, budget, token_id: jti }
  const token = await issueToken(context.db, claims, () => nowMs, call.signal)
  const expires_at = new Date((Math.floor(nowMs / 1_000) + request.ttlSeconds) * 1_000).toISOString()
  const { subject: name, scope, role = null } = request
  const maker = call.actor
  // The lock of the organization keeps other tokens from taking the name meanwhile.
  await changeOrganization(context, call, async ({ tx, organization_id }) => {
    if (name !== maker)
      await requireFreeName({ tx, organization_id }, name, other => other.name === name && other.maker === maker)
    const ends = [client_id ?? null, session_id ?? null, parents?.token_id ?? null]
    const values = [organization_id, jti, name, scope, maker, expires_at, ...ends, role]
    return { statements: [tx.query(insertTokenSql, values)], changes: [], result: undefined }
  })
  return { token, jti, expires_at }
}

type NameInUse = { name: string; maker: string | null; account_id: string | null }

/**
 * Throws a Fault of 400 if a name equals or resembles the name of another valid account, client, session or token.
 * `isSame` recognizes those of the same caller.
 */
export async function requireFreeName(
  { tx, organization_id }: Within,
  name: string,
  isSame: (other: NameInUse) => boolean,
): Promise<void> {
  const inUse = await tx.query<NameInUse>(readNamesInUseSql, [organization_id])
  const key = lookAlikeOf(name)
  const other = inUse.find(each => lookAlikeOf(each.name) === key && !isSame(each))
  if (!other) return
  const message = `The name is, or looks like, that of another account, client, session or token: ${JSON.stringify(other.name)}. Choose another.`
  throw new Fault(createValueRefusal('/name', message))
}

/**
 * Reads a page of tokens, newest first, that begins after the token `before`. Expired tokens are listed for 30 days.
 */
export async function readTokenPage(
  { db, organization_id }: Context,
  { before, limit = 50 }: TokensQuery,
  signal?: Signal,
): Promise<{ items: ListedToken[]; has_more: boolean }> {
  const values = [organization_id, before ?? null, limit + 1]
  return listPage(await db.query<ListedToken>(readTokenPageSql, values, signal), limit)
}

/**
 * Revokes a token and the tokens that were made with it. They are refused within seconds. Throws a Fault `not_found`.
 */
export async function revokeToken({ db, organization_id }: Context, id: string): Promise<void> {
  const revoked = await db.query(revokeTokenSql, [organization_id, id])
  if (revoked.length === 0) refuse('not_found', `The token ${id} does not exist or is already revoked.`)
}

/** The last use of a token, in Unix time in milliseconds. */
export type TokenUse = { organization_id: number; token_id: string; usedAtMs: number }

/** Returns a function that stores the minute of the last use of each token that was used since the previous call. */
export function tokenUses(db: Database, { usesSince }: { usesSince(sinceMs: number): readonly TokenUse[] }) {
  let sinceMs = 0
  return async (): Promise<void> => {
    const startedAtMs = Date.now()
    const uses = usesSince(sinceMs)
    const organizations = uses.map(({ organization_id }) => organization_id)
    const times = uses.map(({ usedAtMs }) => new Date(Math.floor(usedAtMs / 60_000) * 60_000))
    if (uses.length > 0) await db.query(markTokensUsedSql, [organizations, uses.map(({ token_id }) => token_id), times])
    sinceMs = startedAtMs
  }
}

/** Deletes the tokens of all organizations that expired 30 days ago. */
export async function deleteExpiredTokens(db: Database): Promise<void> {
  await db.query(deleteExpiredTokensSql, [])
}
