import { type CryptoKey, importJWK, type JWK } from 'jose'
import type { JsonObject, TokenAlgorithm } from '../decode-jwt.ts'

/** A key that verifies signatures, with the only algorithm that it may be used with. */
export type VerifyingKey = Readonly<{ algorithm: TokenAlgorithm; key: CryptoKey | Uint8Array }>

/** A modulus below 2,048 bits can be factored. Above 8,192 bits, verifying a signature takes too long. */
const modulusBits = { min: 2_048, max: 8_192 }

/**
 * Imports a public JWK. Returns undefined if the key has an unsupported type or use, is too weak, contains its private
 * half, or is not a point on its curve. Only the numbers of the key are imported.
 */
export async function readVerifyingKey(jwk: JsonObject): Promise<VerifyingKey | undefined> {
  const keyType = keyTypeOf(jwk)
  if (!keyType || !isForVerifying(jwk, keyType.algorithm)) return undefined
  try {
    return Object.freeze({ algorithm: keyType.algorithm, key: await importJWK(keyType.numbers, keyType.algorithm) })
  } catch {
    return undefined
  }
}

function keyTypeOf({ kty, crv, x, y, n, e }: JsonObject): { algorithm: TokenAlgorithm; numbers: JWK } | undefined {
  if (kty === 'EC' && crv === 'P-256' && isText(x) && isText(y))
    return { algorithm: 'ES256', numbers: { kty, crv, x, y } }
  if (kty === 'OKP' && crv === 'Ed25519' && isText(x)) return { algorithm: 'EdDSA', numbers: { kty, crv, x } }
  if (kty === 'RSA' && isText(n) && isText(e) && isStrong(n, e)) return { algorithm: 'RS256', numbers: { kty, n, e } }
  return undefined
}

function isForVerifying({ use, key_ops: keyOps, alg, d, p, q, k }: JsonObject, algorithm: TokenAlgorithm): boolean {
  return (
    (alg === undefined || alg === algorithm) &&
    (use === undefined || use === 'sig') &&
    (keyOps === undefined || (Array.isArray(keyOps) && keyOps.includes('verify'))) &&
    [d, p, q, k].every(secret => secret === undefined)
  )
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** With an exponent of 1, every text is its own signature. An even exponent has no inverse. */
function isStrong(modulus: string, exponent: string): boolean {
  const [n, e] = [numberOf(modulus), numberOf(exponent)]
  const bits = n.toString(2).length
  return bits >= modulusBits.min && bits <= modulusBits.max && n % 2n === 1n && e >= 3n && e % 2n === 1n
}

/** Reads at most 4,096 characters. A longer modulus is too large anyway. */
function numberOf(base64url: string): bigint {
  const bytes = Buffer.from(base64url.slice(0, 4_096), 'base64url')
  return bytes.length === 0 ? 0n : BigInt(`0x${bytes.toString('hex')}`)
}
