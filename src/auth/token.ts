import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Database } from '../db/db.ts'
import { Fault, type Refusal, refuseValue } from '../errors.ts'
import type { Signal } from '../signal.ts'
import { isSubject } from './claims.ts'
import { own_name, takeSigningKey } from './keys.ts'
import { refuseScopes, splitScopes } from './scopes.ts'

/** What a token shall say. `scope` names scopes, separated by spaces; `client_id` the client that it is issued to. */
export type TokenRequest = {
  organization_key: string
  subject: string
  scope: string
  ttl_seconds: number
  client_id?: string
}

const longest_ttl_seconds = 100 * 366 * 86_400

/**
 * Signs a token with the newest key, that ends `ttl_seconds` from now; whether the organization exists is the caller's to know. Throws a
 * Fault `invalid_parameter` for no scope, an unknown scope, a subject of another form than 1–255 characters without
 * controls, and a lifetime other than whole seconds from 1 to a hundred years.
 */
export async function issueToken(
  db: Database,
  request: TokenRequest,
  now_ms: () => number = Date.now,
  signal?: Signal,
): Promise<string> {
  const { organization_key, client_id, ttl_seconds } = request
  const words = splitScopes(request.scope)
  const refusal = refuseRequest(request, words)
  if (refusal) throw new Fault(refusal)
  const issued_at = Math.floor(now_ms() / 1_000)
  const expires_at = issued_at + ttl_seconds
  const { kid, algorithm, key } = await takeSigningKey(db, expires_at, signal)
  return new SignJWT({ org: organization_key, scope: words.join(' '), ...(client_id !== undefined && { client_id }) })
    .setProtectedHeader({ alg: algorithm, kid, typ: 'JWT' })
    .setIssuer(own_name)
    .setAudience(own_name)
    .setSubject(request.subject)
    .setIssuedAt(issued_at)
    .setExpirationTime(expires_at)
    .setJti(randomUUID())
    .sign(key)
}

function refuseRequest({ subject, ttl_seconds }: TokenRequest, words: string[]): Refusal | undefined {
  const refusal = refuseScopes(words)
  if (refusal) return refusal
  if (!isSubject(subject)) return refuseValue('/subject', 'A subject has 1 to 255 characters, none a control.')
  if (!Number.isInteger(ttl_seconds) || ttl_seconds < 1 || ttl_seconds > longest_ttl_seconds)
    return refuseValue('/ttl_seconds', 'A token lasts whole seconds, from 1 to a hundred years.')
  return undefined
}
