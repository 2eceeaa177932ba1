import type { JWK } from 'jose'
import type { Config } from '../config.ts'
import type { Database } from '../db/db.ts'
import { fail } from '../errors.ts'
import { setBounded } from './bounded.ts'
import type { Caller } from './caller.ts'
import { type Claims, expired } from './claims.ts'
import { type Keys, own_name } from './keys.ts'
import { createOrganizationFinder } from './organizations.ts'
import { issueToken, type TokenRequest } from './token.ts'
import { type KeyRing, verifyToken } from './verify.ts'

export type Authenticator = Readonly<{
  /**
   * The caller that a request's Authorization headers speak for: at once for a token that was verified before. Throws
   * a Fault `unauthorized` with `WWW-Authenticate` as RFC 6750 has it: without an error code when there is no token.
   */
  authenticate(authorizations: readonly string[], signal?: AbortSignal): Caller | Promise<Caller>
  /** The public halves of the service's keys (RFC 7517). */
  jwks(): { keys: JWK[] }
  /** Signs a token, see {@link issueToken}. */
  issueToken(request: TokenRequest): Promise<string>
}>

type AuthenticatorOptions = {
  db: Database
  keys: Keys
  config: Pick<Config, 'auth_secret' | 'limits'>
  /** The clock, Unix time in milliseconds. */
  now_ms?: () => number
}

type VerifiedToken = { caller: Caller; expires_at_ms: number }

// A token of ours has 400 bytes: some 5 MB when full.
const most_verified = 10_000

export function createAuthenticator({ db, keys, config, now_ms = Date.now }: AuthenticatorOptions): Authenticator {
  const ring = ringOf(keys, config.auth_secret)
  const findOrganization = createOrganizationFinder(db, now_ms)
  // Keyed by the whole text: what was verified is this signature over these bytes. Wrong tokens are not kept.
  const verified = new Map<string, VerifiedToken>()

  async function verify(token: string, signal: AbortSignal | undefined): Promise<Caller> {
    const verdict = await verifyToken(token, ring, now_ms())
    if ('problem' in verdict) return refuseToken(verdict.problem)
    const { claims } = verdict
    const organization = await findOrganization(claims.organization_key, signal)
    if (!organization) return refuseToken('its organization does not exist')
    const caller = callerOf(claims, organization)
    setBounded(verified, token, { caller, expires_at_ms: claims.expires_at_ms }, most_verified)
    return caller
  }

  return Object.freeze({
    authenticate: (authorizations, signal) => {
      const token = readBearer(authorizations)
      const known = verified.get(token)
      if (known && now_ms() < known.expires_at_ms) return known.caller
      if (known) {
        verified.delete(token)
        return refuseToken(expired)
      }
      if (token.length > config.limits.token_bytes) return refuseToken()
      return verify(token, signal)
    },
    jwks: () => keys.public_jwks,
    issueToken: request => issueToken(keys, request, now_ms),
  } satisfies Authenticator)
}

function ringOf(keys: Keys, secret: string | undefined): KeyRing {
  const shared_secret = secret
    ? ({ algorithm: 'HS256', key: Buffer.from(secret), issuer: own_name } as const)
    : undefined
  return { by_kid: keys.verifying, shared_secret }
}

function callerOf({ subject, scopes }: Claims, organization: Caller['organization']): Caller {
  return Object.freeze({ organization, subject, scopes })
}

/** The text behind `Bearer` and one space. Another scheme is no token (RFC 6750, 3.1); two headers are a wrong one. */
function readBearer(authorizations: readonly string[]): string {
  const [authorization = ''] = authorizations
  if (authorizations.length > 1) return refuseToken()
  if (authorization.slice(0, 7).toLowerCase() === 'bearer ') return authorization.slice(7)
  if (/^bearer(?![\w!#$%&'*+.^`|~-])/i.test(authorization)) return refuseToken()
  return fail('unauthorized', 'The request needs a token: send the header Authorization: Bearer <token>.', {
    headers: { 'WWW-Authenticate': 'Bearer realm="kith"' },
  })
}

function refuseToken(problem?: string): never {
  return fail('unauthorized', problem ? `The token is not valid: ${problem}.` : 'The token is not valid.', {
    headers: { 'WWW-Authenticate': 'Bearer realm="kith", error="invalid_token"' },
  })
}
