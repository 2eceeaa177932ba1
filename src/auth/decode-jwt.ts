import { parseExactly } from '../parse-json.ts'

export type TokenAlgorithm = 'ES256' | 'RS256' | 'EdDSA' | 'HS256'

/** A token taken apart, its signature not looked at yet: nothing in here is to be believed. */
export type UnverifiedToken = { algorithm: TokenAlgorithm; kid: string | undefined; payload: JsonObject }

export type JsonObject = Record<string, unknown>

const algorithms: readonly unknown[] = ['ES256', 'RS256', 'EdDSA', 'HS256'] satisfies TokenAlgorithm[]

/** RFC 9068 calls access tokens so, and RFC 7519 all tokens. */
const types = ['JWT', 'AT+JWT', 'APPLICATION/AT+JWT']

/** Headers that bring their own key, or change what is signed: such tokens are refused, not read past. */
const refusedHeaders = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc']

/**
 * Takes apart a compact JWS, more strictly than jose does: three canonical base64url parts, JSON objects in valid UTF-8
 * that name nothing twice, a known algorithm. Undefined for anything else. Works in the length of the text.
 */
export function decodeJwt(token: string): UnverifiedToken | undefined {
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
    (typ === undefined || (typeof typ === 'string' && types.includes(typ.toUpperCase()))) &&
    !refusedHeaders.some(name => Object.hasOwn(header, name))
  )
}

/** Node's decoder skips what is not base64url and takes padding: only what it would write itself is taken. */
function decodePart(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return part !== '' && bytes.toString('base64url') === part ? bytes : undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** An object in which every name stands once at its place; undefined for other JSON, and for what is none. */
export function parseObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value = parseExactly(text)
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined
    return countMembers(value) === countWritten(text) ? (value as JsonObject) : undefined
  } catch {
    return undefined
  }
}

/** Every member of valid JSON has one colon outside of strings. */
function countWritten(text: string): number {
  return text.replace(/"(?:[^"\\]+|\\.)*"/g, '').split(':').length - 1
}

/** Members of all objects in a value. A name that was written twice is one member. */
function countMembers(value: object): number {
  let members = 0
  const waiting: object[] = [value]
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    const values: unknown[] = Object.values(item)
    if (!Array.isArray(item)) members += values.length
    for (const child of values) if (child !== null && typeof child === 'object') waiting.push(child)
  }
  return members
}
