import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Database } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import { requireScopes } from '../route/scopes.ts'
import { actorNameMessage } from '../values/actor-names.ts'
import { createValueRefusal, Fault } from '../values/errors.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import { isSubject } from './claims.ts'
import { ownName, takeSigningKey } from './keys/keys.ts'

/**
 * The contents of a new token. `scope` lists scopes, separated by spaces. `client_id` and `session_id` name the client
 * or the session that it ends with, `token_id` its row in the list of tokens, `maker` and `budget` the caller that
 * makes it, `role` its role.
 */
export type TokenRequest = {
  organizationKey: string
  subject: string
  scope: string
  ttlSeconds: number
  client_id?: string | undefined
  session_id?: string | undefined
  token_id?: string | undefined
  budget?: string | undefined
  maker?: string | undefined
  role?: string | undefined
}

const maxTtlSeconds = 100 * 366 * 86_400

/**
 * Signs a token that expires `ttlSeconds` from now. The caller must ensure that the organization exists. Throws a Fault
 * `invalid_parameter` for no scope, an unknown scope, a subject that is not 1 to 255 characters without control
 * characters, and a lifetime that is not a whole number of seconds from 1 to 100 years.
 */
export async function issueToken(
  db: Database,
  request: TokenRequest,
  nowMs: () => number = Date.now,
  signal?: Signal,
): Promise<string> {
  const { organizationKey, subject, client_id, session_id, token_id, budget, maker, role, ttlSeconds } = request
  const words = requireScopes(request.scope)
  if (!isSubject(subject))
    throw new Fault(createValueRefusal('/subject', withUnseen(`The subject ${actorNameMessage}.`, subject)))
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > maxTtlSeconds) {
    const message = 'The lifetime must be a whole number of seconds, from 1 second to 100 years.'
    throw new Fault(createValueRefusal('/ttl_seconds', message))
  }
  const issuedAt = Math.floor(nowMs() / 1_000)
  const expiresAt = issuedAt + ttlSeconds
  const { kid, algorithm, key } = await takeSigningKey(db, expiresAt, signal)
  // JSON omits undefined members.
  return new SignJWT({
    org: organizationKey,
    scope: words.join(' '),
    client_id,
    session_id,
    token_id,
    budget,
    maker,
    role,
  })
    .setProtectedHeader({ alg: algorithm, kid, typ: 'JWT' })
    .setIssuer(ownName)
    .setAudience(ownName)
    .setSubject(subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(expiresAt)
    .setJti(token_id ?? randomUUID())
    .sign(key)
}
