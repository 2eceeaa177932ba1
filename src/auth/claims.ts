import { isOrganizationKey } from '../organizations/directory.ts'
import { own_name } from './keys.ts'
import { parseScopes, type Scope } from './scopes.ts'
import type { JsonObject } from './shape.ts'

/** What a token says, checked but for the organization's existence. `expires_at_ms` in Unix time. */
export type Claims = {
  organization_key: string
  subject: string
  scopes: ReadonlySet<Scope>
  expires_at_ms: number
}

const clock_tolerance_ms = 30_000

// Year 9999. A time in milliseconds, the usual mistake, would be a token for all eternity.
const latest_time_seconds = 253_402_300_799

/** Whether a text can be the subject of a token: it is written beside every change. */
export function isSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && /^\P{Cc}{1,255}$/u.test(subject) && subject.isWellFormed()
}

/**
 * Reads the claims of a verified token, or says in a sentence what is wrong with them. A token ends at its `exp`,
 * sharp; clocks that differ by up to 30 s are forgiven in `nbf` and `iat`. `aud` is a text: arrays are refused. A
 * `scope` that is missing or no text grants nothing.
 */
export function readClaims(payload: JsonObject, issuer: string, now_ms: number): Claims | string {
  const { iss, aud, sub, org, scope, exp, nbf, iat, jti } = payload
  if (iss !== issuer) return `its iss is not ${issuer}`
  if (aud !== own_name) return `its aud is not ${own_name}`
  if (!isSubject(sub)) return 'its sub is not 1 to 255 characters without controls'
  if (typeof org !== 'string' || !isOrganizationKey(org)) return 'its org is not the key of an organization'
  if (jti !== undefined && typeof jti !== 'string') return 'its jti is not a text'
  if (!isTime(exp)) return 'its exp is not a time in seconds'
  if (now_ms >= exp * 1_000) return expired
  for (const [name, time] of Object.entries({ nbf, iat })) {
    if (time === undefined) continue
    if (!isTime(time)) return `its ${name} is not a time in seconds`
    if (time * 1_000 > now_ms + clock_tolerance_ms) return `its ${name} is in the future`
  }
  const scopes = parseScopes(typeof scope === 'string' ? scope : '')
  return { organization_key: org, subject: sub, scopes, expires_at_ms: exp * 1_000 }
}

export const expired = 'it has expired'

/** Fractions of a second are allowed (RFC 7519, NumericDate). */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= latest_time_seconds
}
