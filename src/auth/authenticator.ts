import type { JWK } from 'jose'
import type { Config } from '../config.ts'
import type { Database } from '../db/db.ts'
import { fail } from '../errors.ts'
import type { Signal } from '../signal.ts'
import { setWithBound } from './bounded-map.ts'
import type { Caller } from './caller.ts'
import { expired } from './claims.ts'
import { createClients } from './clients.ts'
import { type Issuer, outsideIssuer, ownIssuer } from './issuers.ts'
import type { Keys } from './keys.ts'
import { createOrganizations } from './organizations.ts'
import { createOutsideKeys } from './outside-keys.ts'
import { createOwnKeys } from './own-keys.ts'
import { issueToken, type TokenRequest } from './token.ts'
import { type Verified, verifyToken } from './verify.ts'

export type Authenticator = Readonly<{
  /**
   * The caller that a request's Authorization headers speak for: at once for a token that was verified before. Throws
   * a Fault `unauthorized` with `WWW-Authenticate` as RFC 6750 has it: without an error code when there is no token.
   */
  authenticate(authorizations: readonly string[], signal?: Signal): Caller | Promise<Caller>
  /** The organization that an Authorization header spoke for when last asked: not whether it still does. Asks nobody. */
  recall(authorization: string): number | undefined
  /** The public halves of the service's live keys (RFC 7517). */
  jwks(): Promise<{ keys: JWK[] }>
  /** Signs a token, see {@link issueToken}. */
  issueToken(request: TokenRequest, signal?: Signal): Promise<string>
}>

type AuthenticatorOptions = {
  db: Database
  keys: Keys
  config: Pick<Config, 'authSecret' | 'outsideIssuer' | 'limits'>
  /** The clock, Unix time in milliseconds. */
  nowMs?: () => number
  /** Told in a sentence what the operator should know. */
  report?: (problem: string) => void
}

type Remembered = Verified & { caller: Caller }

// A token of ours has 400 bytes: some 5 MB when full.
const mostVerified = 10_000

export function createAuthenticator({
  db,
  keys,
  config,
  nowMs = Date.now,
  report = () => {},
}: AuthenticatorOptions): Authenticator {
  const ownKeys = createOwnKeys({ db, keys, sharedSecret: sharedKey(config.authSecret) }, nowMs)
  const issuers = [ownIssuer(ownKeys), ...outsideIssuers(config, nowMs, report)]
  const organizations = createOrganizations(db, nowMs)
  const clients = createClients(db, nowMs)
  // Keyed by the whole header: what was verified is this signature over these bytes. Wrong tokens are not kept.
  const verified = new Map<string, Remembered>()

  async function verify(token: string, authorization: string, signal: Signal | undefined): Promise<Caller> {
    const verdict = await verifyToken(token, issuers, nowMs)
    if ('problem' in verdict) return refuseToken(verdict.problem)
    const { organizationKey, subject, scopes } = verdict.claims
    const client_id = clientOf(verdict)
    const organization = await organizations.find(organizationKey, signal)
    if (!organization) return refuseToken('its organization does not exist')
    if (client_id !== undefined && !(await clients.find(organization, client_id, signal)))
      return refuseToken('its client has been revoked')
    const caller = Object.freeze({ organization, subject, scopes })
    setWithBound(verified, authorization, { ...verdict, caller }, mostVerified)
    return caller
  }

  /** Whether all that a token stood on still stands, as far as is known without asking. */
  function stands(token: Remembered): boolean {
    const { organization } = token.caller
    const client_id = clientOf(token)
    return (
      token.issuer.keys.peek(token.kid) === token.key &&
      organizations.peek(organization.key)?.id === organization.id &&
      (client_id === undefined || clients.peek(organization, client_id) === true)
    )
  }

  /** An outside issuer's clients are not ours. */
  const clientOf = ({ issuer, claims }: Verified) => (issuer === issuers[0] ? claims.client_id : undefined)

  return Object.freeze({
    authenticate: (authorizations, signal) => {
      const [authorization = ''] = authorizations
      const known = authorizations.length === 1 ? verified.get(authorization) : undefined
      const serves = known !== undefined && nowMs() < known.claims.expiresAtMs && stands(known)
      const token = serves ? '' : readBearer(authorizations)
      db.observer?.cache('token', serves)
      if (serves) return known.caller
      if (known) verified.delete(authorization)
      if (known && nowMs() >= known.claims.expiresAtMs) return refuseToken(expired)
      if (token.length > config.limits.tokenBytes) return refuseToken()
      return verify(token, authorization, signal)
    },
    recall: authorization => verified.get(authorization)?.caller.organization.id,
    jwks: ownKeys.jwks,
    issueToken: (request, signal) => issueToken(db, request, nowMs, signal),
  } satisfies Authenticator)
}

function outsideIssuers(
  { outsideIssuer: settings }: AuthenticatorOptions['config'],
  nowMs: () => number,
  report: (problem: string) => void,
): Issuer[] {
  if (!settings) return []
  return [outsideIssuer(settings, createOutsideKeys({ ...settings, nowMs, report }))]
}

const sharedKey = (secret: string | undefined) =>
  secret === undefined ? undefined : ({ algorithm: 'HS256', key: Buffer.from(secret) } as const)

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
