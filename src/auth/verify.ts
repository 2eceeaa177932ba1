import { compactVerify, errors } from 'jose'
import { type Claims, readClaims } from './claims.ts'
import { decodeJwt } from './decode-jwt.ts'
import type { Issuer } from './issuers.ts'
import type { VerifyingKey } from './keys/jwk.ts'

/** A verified token: its claims, its issuer, and the key that signed it. */
export type VerifiedToken = { claims: Claims; issuer: Issuer; kid: string | undefined; key: VerifyingKey }

/** `problem` says what is wrong with a correctly signed token. It is undefined for any other invalid token. */
export type Verification = VerifiedToken | { problem: string | undefined }

/**
 * Verifies the signature and the claims of a token. Its unverified `iss` only selects the issuer; an unknown `iss`
 * causes no look-up. The result is the same for a wrong signature, an unknown key and a malformed token.
 */
export async function verifyToken(
  token: string,
  issuers: readonly Issuer[],
  nowMs: () => number,
): Promise<Verification> {
  const unverified = decodeJwt(token)
  if (!unverified) return { problem: undefined }
  const { algorithm, kid, payload } = unverified
  const issuer = issuers.find(({ name }) => name === payload.iss)
  // Only the shared secret has no `kid`. A public key is therefore never used as an HMAC secret, nor the reverse.
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
