import { isSubject } from '../auth/claims.ts'
import { issueToken } from '../auth/token.ts'
import type { Database } from '../db/db.ts'
import { createValueRefusal, Fault } from '../errors.ts'
import type { Call } from '../http/pipeline/route.ts'
import { requireGrantable } from './grantable-scopes.ts'
import type { ApiTokenShape, NewApiToken } from './schema.ts'

/**
 * Makes a token of the caller's organization. Throws a Fault of 400 for a scope that the caller does not have, and for a name that no
 * subject can have.
 */
export async function createApiToken(
  db: Database,
  { caller, body, signal }: Call<NewApiToken>,
): Promise<ApiTokenShape> {
  const { name = caller.subject, expires_in: ttlSeconds } = body
  requireGrantable(caller, body.scopes)
  if (!isSubject(name)) throw new Fault(createValueRefusal('/name', 'The name must have no control characters.'))
  const scopes = [...new Set(body.scopes)]
  const organizationKey = caller.organization.key
  const nowMs = Date.now()
  const request = { organizationKey, subject: name, scope: scopes.join(' '), ttlSeconds }
  const token = await issueToken(db, request, () => nowMs, signal)
  const expires_at = new Date((Math.floor(nowMs / 1_000) + ttlSeconds) * 1_000).toISOString()
  return { token, name, scopes, expires_at }
}
