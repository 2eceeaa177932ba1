import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Database } from '../db/db.ts'
import { Fault, type Refusal, refuseValue } from '../errors.ts'
import type { Signal } from '../signal.ts'
import { isSubject } from './claims.ts'
import { ownName, takeSigningKey } from './keys.ts'
import { refuseScopes, splitScopes } from './scopes.ts'

/** What a token shall say. `scope` names scopes, separated by spaces; `client_id` the client that it is issued to. */
export type TokenRequest = {
  organizationKey: string
  subject: string
  scope: string
  ttlSeconds: number
  client_id?: string
}

const longestTtlSeconds = 100 * 366 * 86_400

/**
 * Signs a token with the newest key, that ends `ttl_seconds` from now; whether the organization exists is the caller's to know. Throws a
 * Fault `invalid_parameter` for no scope, an unknown scope, a subject of another form than 1–255 characters without
 * controls, and a lifetime other than whole seconds from 1 to a hundred years.
 */
export async function issueToken(
  db: Database,
  request: TokenRequest,
  nowMs: () => number = Date.now,
  signal?: Signal,
): Promise<string> {
  const { organizationKey, client_id, ttlSeconds } = request
  const words = splitScopes(request.scope)
  const refusal = refuseRequest(request, words)
  if (refusal) throw new Fault(refusal)
  const issuedAt = Math.floor(nowMs() / 1_000)
  const expiresAt = issuedAt + ttlSeconds
  const { kid, algorithm, key } = await takeSigningKey(db, expiresAt, signal)
  return new SignJWT({ org: organizationKey, scope: words.join(' '), ...(client_id !== undefined && { client_id }) })
    .setProtectedHeader({ alg: algorithm, kid, typ: 'JWT' })
    .setIssuer(ownName)
    .setAudience(ownName)
    .setSubject(request.subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(expiresAt)
    .setJti(randomUUID())
    .sign(key)
}

function refuseRequest({ subject, ttlSeconds }: TokenRequest, words: string[]): Refusal | undefined {
  const refusal = refuseScopes(words)
  if (refusal) return refusal
  if (!isSubject(subject)) return refuseValue('/subject', 'A subject has 1 to 255 characters, none a control.')
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > longestTtlSeconds)
    return refuseValue('/ttl_seconds', 'A token lasts whole seconds, from 1 to a hundred years.')
  return undefined
}
