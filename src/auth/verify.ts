import { compactVerify, errors } from 'jose'
import { type Claims, readClaims } from './claims.ts'
import { decodeJwt } from './decode-jwt.ts'
import type { Issuer } from './issuers.ts'
import type { VerifyingKey } from './jwk.ts'

/** What a genuine token says, and whose word it is. */
export type Verified = { claims: Claims; issuer: Issuer; kid: string | undefined; key: VerifyingKey }

/** `problem` says what is wrong with a token whose signature is right; all others are refused without a word. */
export type Verdict = Verified | { problem: string | undefined }

/**
 * Decides whether a token is genuine and in force. Its `iss` is believed as far as choosing whose keys to try: one that
 * is unknown is asked nowhere. Nothing tells a wrong signature from an unknown key or a broken form.
 */
export async function verifyToken(token: string, issuers: readonly Issuer[], nowMs: () => number): Promise<Verdict> {
  const unverified = decodeJwt(token)
  if (!unverified) return { problem: undefined }
  const { algorithm, kid, payload } = unverified
  const issuer = issuers.find(({ name }) => name === payload.iss)
  // Only the shared secret has no name: a public key is never taken for it, nor a secret looked up among keys.
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
