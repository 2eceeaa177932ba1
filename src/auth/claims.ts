import { isOrganizationKey } from '../organizations/organizations.ts'
import type { JsonObject } from './decode-jwt.ts'
import type { Issuer } from './issuers.ts'
import { parseScopes, type Scope } from './scopes.ts'

/** What a token says, checked but for the existence of organization and client. */
export type Claims = {
  organizationKey: string
  subject: string
  scopes: ReadonlySet<Scope>
  /** The client that the token was issued to, where it says so. */
  client_id: string | undefined
  /** The moment from which it is refused. */
  expiresAtMs: number
}

const clockToleranceMs = 30_000

// Year 9999. A time in milliseconds, the usual mistake, would be a token for all eternity.
const latestTimeSeconds = 253_402_300_799

/** Whether a text can be the subject of a token: it is written beside every change. */
export function isSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && /^\P{Cc}{1,255}$/u.test(subject) && subject.isWellFormed()
}

/**
 * Reads the claims of a verified token, or says in a sentence what is wrong with them. A token ends at its `exp`:
 * sharp, or as much later as the issuer's clock is forgiven. Clocks that differ by up to 30 s are forgiven in `nbf` and
 * `iat`. `aud` is a text: arrays are refused. A `scope` that is missing or no text grants nothing.
 */
export function readClaims(payload: JsonObject, issuer: Issuer, nowMs: number): Claims | string {
  const { iss, aud, sub, org, scope, exp, nbf, iat, jti, client_id } = payload
  if (iss !== issuer.name) return `its iss is not ${issuer.name}`
  if (aud !== issuer.audience) return `its aud is not ${issuer.audience}`
  if (!isSubject(sub)) return 'its sub is not 1 to 255 characters without controls'
  if (typeof org !== 'string' || !isOrganizationKey(org)) return 'its org is not the key of an organization'
  if (jti !== undefined && typeof jti !== 'string') return 'its jti is not a text'
  if (client_id !== undefined && typeof client_id !== 'string') return 'its client_id is not a text'
  if (!isTime(exp)) return 'its exp is not a time in seconds'
  const expiresAtMs = exp * 1_000 + issuer.toleranceMs
  if (nowMs >= expiresAtMs) return expired
  for (const [name, time] of Object.entries({ nbf, iat })) {
    if (time === undefined) continue
    if (!isTime(time)) return `its ${name} is not a time in seconds`
    if (time * 1_000 > nowMs + clockToleranceMs) return `its ${name} is in the future`
  }
  const scopes = parseScopes(typeof scope === 'string' ? scope : '')
  return { organizationKey: org, subject: sub, scopes, client_id, expiresAtMs }
}

export const expired = 'it has expired'

/** Fractions of a second are allowed (RFC 7519, NumericDate). */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= latestTimeSeconds
}
