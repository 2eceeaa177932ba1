import { compactVerify, errors } from 'jose'
import type { Database } from '../db/db.ts'
import type { Config } from '../process/config.ts'
import type { Signal } from '../process/signal.ts'
import type { Caller } from '../route/caller.ts'
import { bearerChallenge } from '../route/scopes.ts'
import { refuse } from '../values/errors.ts'
import { type Claims, expiredProblem, readClaims } from './claims.ts'
import { decodeJwt } from './decode-jwt.ts'
import type { TokenUse } from './issued-tokens.ts'
import { type Issuer, outsideIssuer, ownIssuer } from './issuers.ts'
import type { VerifyingKey } from './keys/jwk.ts'
import type { Keys } from './keys/keys.ts'
import { createOutsideKeys } from './keys/outside-keys.ts'
import { createOwnKeys } from './keys/own-keys.ts'
import { createOrganizations } from './organizations.ts'
import { createParents, type ParentIds } from './parents.ts'
import { createSessions } from './sessions.ts'
import { issueToken, type TokenRequest } from './token.ts'
import { setWithBound } from './ttl-cache.ts'

export type Authenticator = ReturnType<typeof createAuthenticator>

type AuthenticatorOptions = {
  db: Database
  keys: Keys
  config: Pick<Config, 'authSecret' | 'outsideIssuer' | 'limits'>
  /** The clock, Unix time in milliseconds. */
  nowMs?: () => number
  /** Called with a sentence that the operator should read. */
  report?: (problem: string) => void
}

/** A token with a valid signature, its caller, and its last use in Unix time in milliseconds. */
export type CachedToken = VerifiedToken & { caller: Caller; usedAtMs: number }

// A token of kith has 400 bytes, so a full cache takes about 12 MB.
const maxCachedTokens = 25_000

export function createAuthenticator({ db, keys, config, nowMs = Date.now, report = () => {} }: AuthenticatorOptions) {
  const ownKeys = createOwnKeys({ db, keys, sharedSecret: sharedKey(config.authSecret) }, nowMs)
  const outside = config.outsideIssuer
  const issuers = [
    ownIssuer(ownKeys),
    ...(outside ? [outsideIssuer(outside, createOutsideKeys({ ...outside, nowMs, report }))] : []),
  ]
  const organizations = createOrganizations(db, nowMs)
  const parents = createParents(db, nowMs)
  // The key is the whole header, because the signature covers exactly these bytes. Invalid tokens are not cached.
  const verified = new Map<string, CachedToken>()

  async function verify(token: string, authorization: string, signal: Signal | undefined): Promise<Caller> {
    const verification = await verifyToken(token, issuers, nowMs)
    if ('problem' in verification) return throwInvalidToken(verification.problem)
    return admit(verification, authorization, signal)
  }

  /** Admits a token with a valid signature, if its organization, client and session exist. */
  async function admit(
    verification: VerifiedToken,
    authorization: string,
    signal: Signal | undefined,
  ): Promise<Caller> {
    const { organizationKey, subject, scopes, expiresAtMs, budget, role } = verification.claims
    const ids = parentsOf(verification)
    const organization = await organizations.find(organizationKey, signal)
    const problem = organization ? await parents.find(organization, ids, signal) : 'its organization does not exist'
    if (!organization || problem !== undefined) {
      verified.delete(authorization)
      return throwInvalidToken(problem)
    }
    const isMade = isOwn(verification) && budget !== undefined
    const credential = Object.freeze({ ...ids, budget: isMade ? budget : subject, expiresAtMs })
    const given = { organization, subject, scopes, identity: identityOf(verification), credential }
    const caller = Object.freeze(role === undefined ? given : { ...given, role })
    setWithBound(verified, authorization, { ...verification, caller, usedAtMs: nowMs() }, maxCachedTokens)
    return caller
  }

  /** Whether the signature of a cached token is still valid. Uses only caches. */
  const isStillSigned = (token: CachedToken): boolean =>
    nowMs() < token.claims.expiresAtMs && token.issuer.keys.peek(token.kid) === token.key

  /** Whether the organization, client and session of a cached token are still valid. Uses only caches. */
  function isStillAdmitted(token: CachedToken): boolean {
    const { organization } = token.caller
    return (
      organizations.peek(organization.key)?.id === organization.id &&
      parents.peek(organization, token.caller.credential)
    )
  }

  const isOwn = ({ issuer }: VerifiedToken) => issuer === issuers[0]

  /** The client, session and token in the claims. The claims of an outside issuer name none of kith's. */
  function parentsOf(token: VerifiedToken): ParentIds {
    const { client_id, session_id, token_id } = token.claims
    return isOwn(token)
      ? { client_id, session_id, token_id }
      : { client_id: undefined, session_id: undefined, token_id: undefined }
  }

  /**
   * Outside issuers, and callers that make tokens, choose any subject. A subject has no line feed, so none of their
   * identities equals that of a token of the command line, which is the subject alone.
   */
  function identityOf(token: VerifiedToken): string {
    const { subject, maker } = token.claims
    if (!isOwn(token)) return `issuer\n${token.issuer.name}\n${subject}`
    return maker === undefined ? subject : `maker\n${maker}\n${subject}`
  }

  return Object.freeze({
    /**
     * Authenticates a request by its Authorization headers. Returns the caller at once if its verified token is cached.
     * Throws a Fault `unauthorized` with the `WWW-Authenticate` of RFC 6750, which has no error code if there is no
     * token. `recalled` is the result of `recall` for the first header.
     */
    authenticate: (
      authorizations: readonly string[],
      signal?: Signal,
      recalled?: CachedToken,
    ): Caller | Promise<Caller> => {
      const [authorization = ''] = authorizations
      const cached = authorizations.length === 1 ? (recalled ?? verified.get(authorization)) : undefined
      const isSigned = cached !== undefined && isStillSigned(cached)
      const isHit = isSigned && isStillAdmitted(cached)
      const token = isSigned ? '' : readBearer(authorizations)
      db.observer?.cache('token', isHit)
      if (isHit) {
        cached.usedAtMs = nowMs()
        return cached.caller
      }
      if (isSigned) return admit(cached, authorization, signal)
      if (cached) verified.delete(authorization)
      if (cached && nowMs() >= cached.claims.expiresAtMs) return throwInvalidToken(expiredProblem)
      if (token.length > config.limits.tokenBytes) return throwInvalidToken()
      return verify(token, authorization, signal)
    },
    /** The sessions of the console, which authenticate requests by a cookie. */
    sessions: createSessions(db, organizations, nowMs),
    /** The cached token of an Authorization header. It may have expired since. Runs no query. */
    recall: (authorization: string): CachedToken | undefined => verified.get(authorization),
    /** The public halves of the service's valid keys (RFC 7517). */
    jwks: ownKeys.jwks,
    /** The listed tokens that were used since a time, in Unix time in milliseconds, with their last use. */
    usesSince: (sinceMs: number): TokenUse[] =>
      [...verified.values()].flatMap(({ caller: { organization, credential }, usedAtMs }) =>
        credential.token_id === undefined || usedAtMs < sinceMs
          ? []
          : [{ organization_id: organization.id, token_id: credential.token_id, usedAtMs }],
      ),
    /** Signs a token, see {@link issueToken}. */
    issueToken: (request: TokenRequest, signal?: Signal) => issueToken(db, request, nowMs, signal),
  })
}

const sharedKey = (secret: string | undefined) =>
  secret === undefined ? undefined : ({ algorithm: 'HS256', key: Buffer.from(secret) } as const)

/**
 * The token after `Bearer` and one space. Another scheme counts as no token (RFC 6750, 3.1), and two headers count as
 * an invalid token.
 */
function readBearer(authorizations: readonly string[]): string {
  const [authorization = ''] = authorizations
  if (authorizations.length > 1) return throwInvalidToken()
  if (authorization.slice(0, 7).toLowerCase() === 'bearer ') return authorization.slice(7)
  if (/^bearer(?![\w!#$%&'*+.^`|~-])/i.test(authorization)) return throwInvalidToken()
  const message = 'The request needs a token: send the header Authorization: Bearer <token>.'
  return refuse('unauthorized', message, bearerChallenge)
}

function throwInvalidToken(problem?: string): never {
  return refuse('unauthorized', problem ? `The token is not valid: ${problem}.` : 'The token is not valid.', {
    headers: { 'WWW-Authenticate': 'Bearer realm="kith", error="invalid_token"' },
  })
}

/** A verified token: its claims, its issuer, and the key that signed it. */
type VerifiedToken = { claims: Claims; issuer: Issuer; kid: string | undefined; key: VerifyingKey }

/** `problem` describes the fault of a correctly signed token. It is undefined for any other invalid token. */
type Verification = VerifiedToken | { problem: string | undefined }

/**
 * Verifies the signature and the claims of a token. Its unverified `iss` only selects the issuer. An unknown `iss`
 * causes no look-up. The result is the same for a wrong signature, an unknown key and a malformed token.
 */
async function verifyToken(token: string, issuers: readonly Issuer[], nowMs: () => number): Promise<Verification> {
  const unverified = decodeJwt(token)
  if (!unverified) return { problem: undefined }
  const { algorithm, kid, payload } = unverified
  const issuer = issuers.find(({ name }) => name === payload.iss)
  // Only the shared secret has no `kid`. So a public key is never used as an HMAC secret, nor the reverse.
  if (!issuer?.algorithms.includes(algorithm) || (algorithm === 'HS256') !== (kid === undefined))
    return { problem: undefined }
  const key = await issuer.keys.find(kid)
  if (key?.algorithm !== algorithm || !(await isSignedBy(key, token))) return { problem: undefined }
  const claims = readClaims(payload, issuer, nowMs())
  return typeof claims === 'string' ? { problem: claims } : { claims, issuer, kid, key }
}

async function isSignedBy({ key, algorithm }: VerifyingKey, token: string): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [algorithm] })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError) return false
    throw error
  }
}
