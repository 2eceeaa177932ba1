import { createHash } from 'node:crypto'
import { requireRole } from '../auth/caller-role.ts'
import { insertClient } from '../auth/clients.ts'
import { makeListedToken } from '../auth/issued-tokens.ts'
import type { AccessClientBody, ApiTokenBody, ApiTokenShape } from '../auth/schema.ts'
import type { Call } from '../route/call.ts'
import { type Credential, grantedRole, requireGrantable } from '../route/caller.ts'
import { requireActorName, requireNoClientId } from '../values/actor-names.ts'
import { createValueRefusal, Fault } from '../values/errors.ts'

/**
 * Creates a client of the caller's organization. Throws a Fault of 400 for a scope that the caller does not have, and
 * for a name with a control character.
 */
export async function createApiClient({ context, caller, body, signal }: Call<AccessClientBody>) {
  const { name, scopes } = body
  requireGrantable(caller, scopes)
  const role = grantedRole(caller, body.role)
  if (role !== undefined) await requireRole(context, role, signal)
  requireActorName(name)
  const scope = [...new Set(scopes)].join(' ')
  return insertClient(context.db, caller.organization, { name, scope, role }, signal)
}

/**
 * Makes a token of the caller's organization. It ends with the client or the session of the caller, or else with the
 * caller's token. Throws a Fault of 400 for a scope that the caller does not have, for a lifetime beyond that end, and
 * for a name that no subject can have, or that the log has for another actor.
 */
export async function createApiToken(call: Call<ApiTokenBody>): Promise<ApiTokenShape> {
  const { context, caller, body, request_id, signal } = call
  const { name = caller.subject, expires_in: ttlSeconds } = body
  requireGrantable(caller, body.scopes)
  requireActorName(name)
  // A reader of the log must not confuse the holder of the token with another actor.
  if (name !== caller.subject) requireNoClientId(name)
  const scopes = [...new Set(body.scopes)]
  const { credential: parents, organization, subject: actor, identity } = caller
  requireTime(parents, ttlSeconds, Date.now())
  const maker = createHash('sha256').update(identity).digest('base64url')
  const role = grantedRole(caller, body.role)
  const given = { organizationKey: organization.key, subject: name, scope: scopes.join(' '), ttlSeconds, maker, role }
  const made = await makeListedToken(context, { actor, request_id, signal }, { ...given, parents })
  return { ...made, name, scopes, role: role ?? null }
}

/** A client does not expire. Its tokens end when it is revoked. */
function requireTime({ client_id, session_id, expiresAtMs }: Credential, ttlSeconds: number, nowMs: number) {
  const leftSeconds = Math.floor((expiresAtMs - nowMs) / 1_000)
  if (client_id !== undefined || ttlSeconds <= leftSeconds) return
  const parent = session_id === undefined ? 'token' : 'session'
  const message = `The token cannot outlive the ${parent} that makes it: it may last ${leftSeconds} seconds at most. For a longer time, create a client.`
  throw new Fault(createValueRefusal('/expires_in', message))
}
