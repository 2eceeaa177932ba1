import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { Fault, type Refusal, refuseValue } from '../errors.ts'
import { isSubject } from './claims.ts'
import { type Keys, own_name } from './keys.ts'
import { isScope, scopes } from './scopes.ts'

/** What a token shall say. `scope` names scopes, separated by spaces. */
export type TokenRequest = { organization_key: string; subject: string; scope: string; ttl_seconds: number }

const longest_ttl_seconds = 100 * 366 * 86_400

/**
 * Signs a token that ends `ttl_seconds` from now; whether the organization exists is the caller's to know. Throws a
 * Fault `invalid_parameter` for no scope, an unknown scope, a subject of another form than 1–255 characters without
 * controls, and a lifetime other than whole seconds from 1 to a hundred years.
 */
export async function issueToken(keys: Keys, request: TokenRequest, now_ms: () => number = Date.now): Promise<string> {
  const words = request.scope.split(' ').filter(word => word !== '')
  const refusal = refuseRequest(request, words)
  if (refusal) throw new Fault(refusal)
  const issued_at = Math.floor(now_ms() / 1_000)
  const { kid, algorithm, key } = keys.signing
  return new SignJWT({ org: request.organization_key, scope: [...new Set(words)].join(' ') })
    .setProtectedHeader({ alg: algorithm, kid, typ: 'JWT' })
    .setIssuer(own_name)
    .setAudience(own_name)
    .setSubject(request.subject)
    .setIssuedAt(issued_at)
    .setExpirationTime(issued_at + request.ttl_seconds)
    .setJti(randomUUID())
    .sign(key)
}

function refuseRequest({ subject, ttl_seconds }: TokenRequest, words: string[]): Refusal | undefined {
  if (words.length === 0) return refuseValue('/scope', 'A token needs at least one scope.')
  const unknown = words.find(word => !isScope(word))
  if (unknown !== undefined)
    return refuseValue('/scope', `There is no scope ${JSON.stringify(unknown)}: there are ${scopes.join(', ')}.`)
  if (!isSubject(subject)) return refuseValue('/subject', 'A subject has 1 to 255 characters, none a control.')
  if (!Number.isInteger(ttl_seconds) || ttl_seconds < 1 || ttl_seconds > longest_ttl_seconds)
    return refuseValue('/ttl_seconds', 'A token lasts whole seconds, from 1 to a hundred years.')
  return undefined
}
