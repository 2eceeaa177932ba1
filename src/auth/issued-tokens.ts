import { randomUUID } from 'node:crypto'
import type { Context } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { type Author, changeOrganization } from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import type { Credential } from '../route/caller.ts'
import { lookAlikeOf } from '../values/actor-names.ts'
import { createValueRefusal, Fault, refuse } from '../values/errors.ts'
import { requireRole } from './caller-role.ts'
import { issueToken, type TokenRequest } from './token.ts'
import {
  deleteExpiredTokensSql,
  insertTokenSql,
  markTokensUsedSql,
  readNamesInUseSql,
  readTokenPageSql,
  revokeTokenSql,
} from './tokens-sql.ts'

/** A token that somebody made. Times are RFC 3339 in UTC, `last_used_at` to the minute. */
export type IssuedToken = {
  id: string
  name: string
  scope: string
  role: string | null
  maker: string
  created_at: string
  expires_at: string
  last_used_at: string | null
  revoked_at: string | null
}

type NewToken = Pick<IssuedToken, 'id' | 'name' | 'scope' | 'role' | 'maker' | 'expires_at'> & {
  /** What the token ends with, of the caller that makes it. */
  parents?: Pick<Credential, 'client_id' | 'session_id' | 'token_id'>
}

type MakeCall = Author & { signal?: Signal }

/**
 * Makes a token that the list has. Its maker is the author of the call. Throws a Fault of 400 as {@link issueToken} does, and for a name that
 * is taken.
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
  const stored = { id: jti, name, scope, role, maker: call.actor, expires_at }
  await storeToken(context, call, { ...stored, ...(parents && { parents }) })
  return { token, jti, expires_at }
}

/**
 * Stores a token, so that it counts. Throws a Fault of 400 if its name, or one that looks like it, is that of another client, session or
 * token that is valid: a reader of the log must not take one for the other. A maker may have several tokens of one name, and its own.
 */
async function storeToken(context: Context, call: MakeCall, token: NewToken): Promise<void> {
  const { id, name, scope, role, maker, expires_at, parents } = token
  // Under the lock of the organization no other token takes the name.
  await changeOrganization(context, call, async ({ tx, organization_id }) => {
    if (name !== maker) {
      const inUse = await tx.query<{ name: string; maker: string | null }>(readNamesInUseSql, [organization_id])
      const key = lookAlikeOf(name)
      const other = inUse.find(each => lookAlikeOf(each.name) === key && !(each.name === name && each.maker === maker))
      if (other) throwNameTaken(other.name)
    }
    const { client_id = null, session_id = null, token_id = null } = parents ?? {}
    const values = [organization_id, id, name, scope, maker, expires_at, client_id, session_id, token_id, role]
    return { statements: [tx.query(insertTokenSql, values)], changes: [], result: undefined }
  })
}

function throwNameTaken(other: string): never {
  const message = `The name is, or looks like, that of another client, session or token: ${JSON.stringify(other)}. Choose another.`
  throw new Fault(createValueRefusal('/name', message))
}

/** Reads tokens, newest first: those after the token `before`, at most `limit`. Expired ones are listed for 30 days. */
export const readTokenPage = (
  { db, organization_id }: Context,
  { before, limit }: { before: string | undefined; limit: number },
  signal?: Signal,
): Promise<IssuedToken[]> => db.query<IssuedToken>(readTokenPageSql, [organization_id, before ?? null, limit], signal)

/** Revokes a token and those that were made with it. They are refused within seconds. Throws a Fault `not_found`. */
export async function revokeToken({ db, organization_id }: Context, id: string): Promise<void> {
  const revoked = await db.query(revokeTokenSql, [organization_id, id])
  if (revoked.length === 0) refuse('not_found', `The token ${id} does not exist or is already revoked.`)
}

/** The last use of a token, in Unix time in milliseconds. */
export type TokenUse = { organization_id: number; token_id: string; usedAtMs: number }

/** Returns a function that stores when tokens were last used, to the minute: those that were since it stored the last time. */
export function tokenUses(db: Database, { usesSince }: { usesSince(sinceMs: number): readonly TokenUse[] }) {
  let sinceMs = 0
  return async (): Promise<void> => {
    const startedAtMs = Date.now()
    await storeTokenUses(db, usesSince(sinceMs))
    sinceMs = startedAtMs
  }
}

async function storeTokenUses(db: Database, uses: readonly TokenUse[]): Promise<void> {
  if (uses.length === 0) return
  const times = uses.map(({ usedAtMs }) => new Date(Math.floor(usedAtMs / 60_000) * 60_000))
  await db.query(markTokensUsedSql, [
    uses.map(({ organization_id }) => organization_id),
    uses.map(({ token_id }) => token_id),
    times,
  ])
}

/** Deletes the tokens of all organizations that expired 30 days ago. */
export async function deleteExpiredTokens(db: Database): Promise<void> {
  await db.query(deleteExpiredTokensSql, [])
}
