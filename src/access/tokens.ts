import { isSubject } from '../auth/claims.ts'
import { organizationOf } from '../auth/clients.ts'
import { issueToken } from '../auth/token.ts'
import type { Database } from '../db/db.ts'
import { createValueRefusal, Fault } from '../errors.ts'
import type { Call } from '../http/pipeline/route.ts'
import { requireGrantable } from './grantable-scopes.ts'
import type { ApiTokenShape, NewApiToken } from './schema.ts'

/** The actors by which the change log names kith itself, such as the pages behind consent links. */
const ownActor = /^(link|retention|kith( .*)?)$/

/**
 * Makes a token of the caller's organization. Throws a Fault of 400 for a scope that the caller does not have, and for a name that no
 * subject can have, or that the log knows as another actor.
 */
export async function createApiToken(
  db: Database,
  { caller, body, signal }: Call<NewApiToken>,
): Promise<ApiTokenShape> {
  const { name = caller.subject, expires_in: ttlSeconds } = body
  requireGrantable(caller, body.scopes)
  if (!isSubject(name)) throwWrongName('The name must have no control characters.')
  // A reader of the log must not take the holder of the token for another actor.
  if (name !== caller.subject && (ownActor.test(name) || organizationOf(name) !== undefined))
    throwWrongName('The name is that of kith itself, or has the form of a client_id. Choose another.')
  const scopes = [...new Set(body.scopes)]
  const organizationKey = caller.organization.key
  const nowMs = Date.now()
  const request = { organizationKey, subject: name, scope: scopes.join(' '), ttlSeconds }
  const token = await issueToken(db, request, () => nowMs, signal)
  const expires_at = new Date((Math.floor(nowMs / 1_000) + ttlSeconds) * 1_000).toISOString()
  return { token, name, scopes, expires_at }
}

function throwWrongName(message: string): never {
  throw new Fault(createValueRefusal('/name', message))
}
