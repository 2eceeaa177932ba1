import { findRepeatedMember } from '../../client/src/distinct-members.ts'
import { parseExactly } from '../values/parse-json.ts'

export type TokenAlgorithm = 'ES256' | 'RS256' | 'EdDSA' | 'HS256'

export type JsonObject = Record<string, unknown>

const algorithms: readonly unknown[] = ['ES256', 'RS256', 'EdDSA', 'HS256'] satisfies TokenAlgorithm[]

/** The accepted values of `typ`: `JWT` of RFC 7519, and the access tokens of RFC 9068. */
const acceptedTypes = ['JWT', 'AT+JWT', 'APPLICATION/AT+JWT']

/** Header fields that carry a key or change the signed content. A token with any of them is refused. */
const refusedHeaders = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc']

/**
 * Decodes a compact JWS, more strictly than jose does: three canonical base64url parts, JSON objects in valid UTF-8
 * without duplicate names, a known algorithm. Returns undefined for anything else. The time is linear in the length.
 * The signature is not verified yet, so the contents are not trustworthy.
 */
export function decodeJwt(token: string) {
  const parts = token.split('.', 4)
  if (parts.length !== 3) return undefined
  const [header, payload, signature] = parts.map(decodePart)
  if (!header || !payload || !signature) return undefined
  const fields = parseObject(header)
  const claims = parseObject(payload)
  if (!fields || !claims || !isPlainHeader(fields)) return undefined
  return { algorithm: fields.alg, kid: fields.kid, payload: claims }
}

function isPlainHeader(header: JsonObject): header is { alg: TokenAlgorithm; kid: string | undefined } {
  const { alg, kid, typ } = header
  return (
    algorithms.includes(alg) &&
    (kid === undefined || typeof kid === 'string') &&
    (typ === undefined || (typeof typ === 'string' && acceptedTypes.includes(typ.toUpperCase()))) &&
    !refusedHeaders.some(name => Object.hasOwn(header, name))
  )
}

/** Node's decoder skips invalid characters and accepts padding. This function accepts only the canonical encoding. */
function decodePart(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return part !== '' && bytes.toString('base64url') === part ? bytes : undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses a JSON object. Returns undefined for other JSON, invalid JSON, and objects that contain a duplicate name. */
export function parseObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value = parseExactly(text)
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined
    return findRepeatedMember(text) === undefined ? (value as JsonObject) : undefined
  } catch {
    return undefined
  }
}
