import { type CryptoKey, importJWK, type JWK } from 'jose'
import type { JsonObject, TokenAlgorithm } from './decode-jwt.ts'

/** What checks a signature: one key, one algorithm. */
export type VerifyingKey = Readonly<{ algorithm: TokenAlgorithm; key: CryptoKey | Uint8Array }>

/** Below 2,048 bits a modulus can be factored; beyond 8,192 checking a signature takes too long. */
const modulusBits = { least: 2_048, most: 8_192 }

/**
 * The key of a public JWK, with the one algorithm that it may be used with; undefined for a key of another kind or
 * use, for one that is too weak, that brings its private half along or is not on its curve. Only the numbers of the
 * key are taken.
 */
export async function readVerifyingKey(jwk: JsonObject): Promise<VerifyingKey | undefined> {
  const kind = kindOf(jwk)
  if (!kind || !isForVerifying(jwk, kind.algorithm)) return undefined
  try {
    return Object.freeze({ algorithm: kind.algorithm, key: await importJWK(kind.numbers, kind.algorithm) })
  } catch {
    return undefined
  }
}

function kindOf({ kty, crv, x, y, n, e }: JsonObject): { algorithm: TokenAlgorithm; numbers: JWK } | undefined {
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

/** With an exponent of 1 every text is its own signature; an even one has no inverse. */
function isStrong(modulus: string, exponent: string): boolean {
  const [n, e] = [numberOf(modulus), numberOf(exponent)]
  const bits = n.toString(2).length
  return bits >= modulusBits.least && bits <= modulusBits.most && n % 2n === 1n && e >= 3n && e % 2n === 1n
}

/** At most 4 KiB are read: more is no modulus that would be taken. */
function numberOf(base64url: string): bigint {
  const bytes = Buffer.from(base64url.slice(0, 4_096), 'base64url')
  return bytes.length === 0 ? 0n : BigInt(`0x${bytes.toString('hex')}`)
}
