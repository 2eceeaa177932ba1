/** A malformed text of the ledger. The message describes the fault in a sentence. */
export class FormatError extends Error {}

export const encodeBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

/** Decodes standard base64 in its canonical form: padded, and without unused bits. Undefined for any other text. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0))
  return unusedBitsOf(text) === 0 ? bytes : undefined
}

/** Decodes base64url in its canonical form: without padding and unused bits. Undefined for any other text. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]+$/.test(text) || text.length % 4 === 1) return undefined
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/') + '='.repeat(-text.length & 3))
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The bits of the last digit that belong to no byte. */
function unusedBitsOf(text: string): number {
  const padding = text.length - text.replace(/=+$/, '').length
  const last = alphabet.indexOf(text[text.length - 1 - padding] ?? 'A')
  return padding === 0 ? 0 : last & (padding === 1 ? 0b11 : 0b1111)
}

/** Parses a decimal number without leading zeros. Undefined for any other text, and for numbers above 2^53 - 1. */
export function parseDecimal(text: string): number | undefined {
  const number = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(number) ? number : undefined
}

/** The canonical form of a JSON value, by RFC 8785. Throws a FormatError for a text that is not well-formed Unicode. */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return canonicalText(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = Object.keys(value).sort()
  return `{${members.map(key => `${canonicalText(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`).join()}}`
}

function canonicalText(text: string): string {
  // With the flag u, a lone surrogate is a character.
  if (/\p{Surrogate}/u.test(text)) throw new FormatError('A text is not well-formed Unicode.')
  return JSON.stringify(text)
}

/** SHA-256 of the parts, one after the other. */
export async function sha256(...parts: Uint8Array[]): Promise<Uint8Array> {
  return new Uint8Array(await subtle().digest('SHA-256', concat(parts)))
}

export async function verifyEd25519(publicKey: Uint8Array, signature: Uint8Array, data: Uint8Array): Promise<boolean> {
  const key = await subtle().importKey('raw', concat([publicKey]), 'Ed25519', false, ['verify'])
  return subtle().verify('Ed25519', key, concat([signature]), concat([data]))
}

function subtle(): typeof crypto.subtle {
  const found = (globalThis.crypto as Partial<typeof crypto> | undefined)?.subtle
  if (!found)
    throw new Error('This page cannot check signatures: browsers allow it only on pages with HTTPS or on localhost.')
  return found
}

export function concat(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
