import { isOrganizationKey } from '../organizations/organizations.ts'
import { parseScopes, type Scope } from '../route/scopes.ts'
import { actorNameMessage, isActorName, looksLikeClient } from '../values/actor-names.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import type { JsonObject } from './decode-jwt.ts'
import type { Issuer } from './issuers.ts'
import { ownName } from './keys/keys.ts'

/** The checked claims of a token. The existence of the organization and the client is not checked yet. */
export type Claims = {
  organizationKey: string
  subject: string
  scopes: ReadonlySet<Scope>
  /** The client that the token was issued to, if the token names one. */
  client_id: string | undefined
  /** The console session in which the token was made, if the token names one. */
  session_id: string | undefined
  /**
   * The jti of a listed token. Undefined for a token that ends only with its client, or that a command made for itself.
   */
  token_id: string | undefined
  /** The name under which rate limits count the token's requests, if another token or a session made it. */
  budget: string | undefined
  /** The key of its role, if it has one. */
  role: string | undefined
  /** A digest of the identity of the caller that made the token, if another token or a session made it. */
  maker: string | undefined
  /** Unix time in milliseconds, from which on the token is refused. */
  expiresAtMs: number
}

/** The maximum lead of an issuer's clock. */
export const clockToleranceMs = 30_000

// Year 9999. A larger value is usually a time in milliseconds, and such a token would practically never expire.
const maxTimeSeconds = 253_402_300_799

/** Whether a value can be the subject of a token. */
export const isSubject = (subject: unknown): subject is string => typeof subject === 'string' && isActorName(subject)

/**
 * Reads the claims of a verified token. If they are invalid, returns a text that describes the fault. A token expires
 * at its `exp` plus the issuer's tolerance. `nbf` and `iat` may be up to 30 s in the future. `aud` is the audience, or
 * a list of texts that contains it. A `scope` that is missing or not a string grants nothing.
 */
export function readClaims(payload: JsonObject, issuer: Issuer, nowMs: number): Claims | string {
  const { iss, aud, sub, org, scope, exp, nbf, iat, jti, client_id, session_id, token_id, budget, maker } = payload
  const role = issuer.roleClaim === undefined ? undefined : payload[issuer.roleClaim]
  if (iss !== issuer.name) return `its iss is not ${issuer.name}`
  if (!isAudience(aud, issuer.audience)) return `its aud is not ${issuer.audience}, and no list with it`
  if (!isSubject(sub)) return withUnseen(`its sub ${actorNameMessage}`, sub)
  if (typeof org !== 'string' || !isOrganizationKey(org)) return 'its org is not the key of an organization'
  // The client_ids of kith have this form. Outside issuers have no such clients.
  if (issuer.name !== ownName && looksLikeClient(sub, org)) return 'its sub has the form of a client_id of kith'
  if (jti !== undefined && typeof jti !== 'string') return 'its jti is not a string'
  for (const [name, value] of Object.entries({ client_id, session_id, token_id, budget, maker, role }))
    if (value !== undefined && typeof value !== 'string') return `its ${name} is not a string`
  if (!isTime(exp)) return 'its exp is not a time in seconds'
  const expiresAtMs = exp * 1_000 + issuer.toleranceMs
  if (nowMs >= expiresAtMs) return expiredProblem
  for (const [name, time] of Object.entries({ nbf, iat })) {
    if (time === undefined) continue
    if (!isTime(time)) return `its ${name} is not a time in seconds`
    if (time * 1_000 > nowMs + clockToleranceMs) return `its ${name} is in the future`
  }
  // An operator who configures the claim expects every caller to have a role. A caller without a role would see all
  // fields.
  if (issuer.name !== ownName && issuer.roleClaim !== undefined && role === undefined)
    return `it has no claim ${issuer.roleClaim}, which names the role`
  const scopes = parseScopes(typeof scope === 'string' ? scope : '')
  const names = { client_id, session_id, token_id, budget, maker, role } as Pick<
    Claims,
    'client_id' | 'session_id' | 'token_id' | 'budget' | 'maker' | 'role'
  >
  return { organizationKey: org, subject: sub, scopes, ...names, expiresAtMs }
}

export const expiredProblem = 'it has expired'

/** A list may also name other services (RFC 7519, 4.1.3). Keycloak always sends a list if a token is for several. */
function isAudience(aud: unknown, audience: string): boolean {
  if (!Array.isArray(aud)) return aud === audience
  return aud.includes(audience) && aud.every(each => typeof each === 'string')
}

/** Fractions of a second are allowed (RFC 7519, NumericDate). */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxTimeSeconds
}
