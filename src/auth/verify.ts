import { compactVerify, errors } from 'jose'
import { type Claims, readClaims } from './claims.ts'
import type { VerifyingKey } from './keys.ts'
import { takeApart, type UnverifiedToken } from './shape.ts'

/** Whom a signature may come from: a key by its `kid`, or the shared secret of tokens that name no key. */
export type KeyRing = Readonly<{ by_kid: ReadonlyMap<string, VerifyingKey>; shared_secret: VerifyingKey | undefined }>

/** `problem` says what is wrong with a token whose signature is right; all others are refused without a word. */
export type Verdict = { claims: Claims } | { problem: string | undefined }

/**
 * Decides whether a token is genuine and in force, without the database. Nothing tells a wrong signature from an
 * unknown key or a broken form.
 */
export async function verifyToken(token: string, ring: KeyRing, now_ms: number): Promise<Verdict> {
  const unverified = takeApart(token)
  const key = unverified && keyFor(unverified, ring)
  if (!unverified || !key || !(await isSignedBy(key, token))) return { problem: undefined }
  const claims = readClaims(unverified.payload, key.issuer, now_ms)
  return typeof claims === 'string' ? { problem: claims } : { claims }
}

/** A key of another algorithm than the token's is no key: a public key is never taken for a shared secret. */
function keyFor({ algorithm, kid }: UnverifiedToken, { by_kid, shared_secret }: KeyRing): VerifyingKey | undefined {
  const key = kid === undefined ? shared_secret : by_kid.get(kid)
  return key?.algorithm === algorithm ? key : undefined
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
