import { createHash } from 'node:crypto'
import { isSubject } from '../auth/claims.ts'
import { issueToken } from '../auth/token.ts'
import type { Call } from '../route/call.ts'
import type { Credential } from '../route/caller.ts'
import { actorNameMessage, organizationOf } from '../values/actor-names.ts'
import { createValueRefusal, Fault } from '../values/errors.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import { requireGrantable } from './grantable-scopes.ts'
import type { ApiTokenBody, ApiTokenShape } from './schema.ts'

/**
 * Makes a token of the caller's organization. It ends with the client or the session of the caller, and with the caller's own token
 * otherwise. Throws a Fault of 400 for a scope that the caller does not have, for a lifetime beyond that end, and for a name that no
 * subject can have, or that the log knows as another actor.
 */
export async function createApiToken({
  context: { db },
  caller,
  body,
  signal,
}: Call<ApiTokenBody>): Promise<ApiTokenShape> {
  const { name = caller.subject, expires_in: ttlSeconds } = body
  requireGrantable(caller, body.scopes)
  if (!isSubject(name)) throwWrongName(withUnseen(`The name ${actorNameMessage}.`, name))
  // A reader of the log must not take the holder of the token for another actor.
  if (name !== caller.subject && organizationOf(name) !== undefined)
    throwWrongName('The name has the form of a client_id. Choose another.')
  const scopes = [...new Set(body.scopes)]
  const organizationKey = caller.organization.key
  const nowMs = Date.now()
  requireTime(caller.credential, ttlSeconds, nowMs)
  const { client_id, session_id } = caller.credential
  const maker = createHash('sha256').update(caller.identity).digest('base64url')
  const request = { organizationKey, subject: name, scope: scopes.join(' '), ttlSeconds, client_id, session_id, maker }
  const token = await issueToken(db, request, () => nowMs, signal)
  const expires_at = new Date((Math.floor(nowMs / 1_000) + ttlSeconds) * 1_000).toISOString()
  return { token, name, scopes, expires_at }
}

/** A client has no end of its own: its tokens end when it is revoked. */
function requireTime({ client_id, session_id, expiresAtMs }: Credential, ttlSeconds: number, nowMs: number) {
  const leftSeconds = Math.floor((expiresAtMs - nowMs) / 1_000)
  if (client_id !== undefined || ttlSeconds <= leftSeconds) return
  const parent = session_id === undefined ? 'token' : 'session'
  const message = `The token cannot outlive the ${parent} that makes it: it may last ${leftSeconds} seconds at most. For a longer time, create a client.`
  throw new Fault(createValueRefusal('/expires_in', message))
}

function throwWrongName(message: string): never {
  throw new Fault(createValueRefusal('/name', message))
}
