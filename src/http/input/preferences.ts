import type { Preferences } from '../../route/call.ts'
import { type IfMatch, ifMatchMessage, readIfMatch } from '../../route/entity-tag.ts'
import { refuse } from '../../values/errors.ts'
import { readQualities } from '../../values/qualities.ts'

/** Most requests have neither of the two headers. */
const noPreferences: Preferences = Object.freeze({
  if_match: null,
  representation: false,
  references: 'create',
  erased: 'refuse',
  handling: 'lenient',
})

/** Reads both headers. Throws a Fault of 400 if If-Match is not a list of entity tags. */
export function readPreferences(if_match: string | undefined, prefer: string | undefined): Preferences {
  if (if_match === undefined && prefer === undefined) return noPreferences
  return { if_match: parseIfMatch(if_match), ...parsePrefer(prefer) }
}

function parseIfMatch(header: string | undefined): IfMatch {
  if (header === undefined) return null
  return readIfMatch(header.trim()) ?? refuse('invalid_parameter', `If-Match ${ifMatchMessage}.`)
}

/**
 * Reads `Prefer` (RFC 7240). As the RFC requires, unknown preferences are ignored, and the first of two equal names
 * counts.
 */
function parsePrefer(header: string | undefined): Omit<Preferences, 'if_match'> {
  const preferences = new Map<string, string>()
  for (const element of header?.split(',') ?? []) {
    const [name = '', value = ''] = element.split(';')[0]!.split('=', 2)
    const key = name.trim().toLowerCase()
    if (!preferences.has(key)) preferences.set(key, value.trim().replace(/^"(.*)"$/, '$1'))
  }
  return {
    representation: preferences.get('return') === 'representation',
    references: preferences.get('references') === 'strict' ? 'strict' : 'create',
    erased: preferences.get('erased') === 'recreate' ? 'recreate' : 'refuse',
    handling: preferences.get('handling') === 'strict' ? 'strict' : 'lenient',
  }
}

/**
 * Reads `If-Sequence`: the number of a change that a read must show. Throws a Fault of 400 for anything else. Node
 * joins two headers by a comma, so two headers are refused too.
 */
export function readIfSequence(header: string): number {
  const sequence = Number(header)
  if (/^\d{1,16}$/.test(header) && Number.isSafeInteger(sequence)) return sequence
  return refuse('invalid_parameter', 'The header If-Sequence is malformed.', {
    details: [
      { path: '/If-Sequence', message: 'must be one number of a change, as X-Kith-Sequence of a write returned it' },
    ],
  })
}

const jsonType = 'application/json'

/**
 * Returns the offered media type that an Accept header prefers to JSON (RFC 9110, 12.5.1), or undefined for JSON. The
 * answer is JSON too if no offered type is acceptable, because kith's errors are JSON anyway.
 */
export function chooseMediaType(accept: string | undefined, offered: readonly string[]): string | undefined {
  if (accept === undefined || offered.length === 0) return undefined
  let best: { type: string; quality: number } | undefined
  for (const { name, quality } of readQualities(accept.toLowerCase())) {
    const type = name === '*/*' || name === 'application/*' ? jsonType : name
    if (quality === 0 || (type !== jsonType && !offered.includes(type))) continue
    if (!best || quality > best.quality) best = { type, quality }
  }
  return best?.type === jsonType ? undefined : best?.type
}

/** A content coding in which kith sends streams of lines. */
export type Coding = 'zstd' | 'gzip'

/**
 * Returns the coding that an Accept-Encoding header prefers (RFC 9110, 12.5.3), and zstd if both are equal. The
 * wildcard means gzip, which every client that sends it can read. Returns undefined without a header, if no coding is
 * accepted, or if `identity` is preferred.
 */
export function chooseCoding(acceptEncoding: string | undefined): Coding | undefined {
  if (acceptEncoding === undefined) return undefined
  const preferences = readQualities(acceptEncoding.toLowerCase())
  const qualities = new Map(preferences.map(({ name, quality }) => [name, quality]))
  const zstd = qualities.get('zstd') ?? 0
  const gzip = qualities.get('gzip') ?? qualities.get('x-gzip') ?? qualities.get('*') ?? 0
  const best = Math.max(zstd, gzip)
  if (best === 0 || best < (qualities.get('identity') ?? 0)) return undefined
  return zstd === best ? 'zstd' : 'gzip'
}
