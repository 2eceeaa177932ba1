import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../process/config.ts'
import type { Route } from '../../route/route.ts'
import { createRefusal, Fault, refuse } from '../../values/errors.ts'
import { decodePercent } from './trim.ts'

/**
 * Normalizes a request target. The router, the parameters and the refusals share the result. The usual form is returned
 * as it is. The absolute form (RFC 9112, 3.2.2) is reduced to its path. A first segment that spells `v1` with escapes
 * becomes `v1`. A segment that is not percent-encoded UTF-8 becomes a text that no parameter accepts, so that it is
 * refused at its usual step, after authentication.
 */
export function parseTarget(target: string): string {
  const local = target.startsWith('/') ? target : withoutAuthority(target)
  if (!local.includes('%')) return local
  const end = local.search(/[?#]|$/)
  const path = local.slice(0, end)
  return markMalformed(path).replace(/^\/[^/]*/, normalizeVersion) + local.slice(end)
}

function withoutAuthority(target: string): string {
  const authority = /^https?:\/\/[^/?#]*/i.exec(target)
  if (!authority) return target
  const local = target.slice(authority[0].length)
  return local.startsWith('/') ? local : `/${local}`
}

const normalizeVersion = (segment: string) => (decodePercent(segment) === '/v1' ? '/v1' : segment)

// Parameters must be ASCII, so no parameter accepts this.
const malformedSegment = '\u00ff'

const markMalformed = (path: string) =>
  path
    .split('/')
    .map(segment => (decodePercent(segment) === undefined ? malformedSegment : segment))
    .join('/')

/** Whether a request target is below `/v1`. */
export const isVersioned = (url: string): boolean =>
  url.startsWith('/v1') && (url.length === 3 || '/?#'.includes(url[3]!))

const requestIdPattern = /^[\w-]{1,64}$/

/** The client's X-Request-Id if it has the documented form, otherwise a new UUID. */
export function requestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && requestIdPattern.test(header) ? header : randomUUID()
}

/**
 * The address of the client. Trusted proxies append to X-Forwarded-For; a client may have forged the entries before
 * theirs.
 */
export function clientAddress({ socket, headers }: IncomingMessage, proxies: number): string {
  if (proxies === 0) return socket.remoteAddress ?? ''
  const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
  const chain = [socket.remoteAddress ?? '', ...forwarded.map(entry => entry.trim()).reverse()].filter(Boolean)
  return chain[Math.min(proxies, chain.length - 1)] ?? ''
}

/** The expectation, as Node's server recognizes it. */
const asksToContinue = /(?:^|\W)100-continue(?:$|\W)/i

/**
 * Throws a Fault of 431 for headers that are too large, and of 400 for an HTTP version other than 1.0 and 1.1, for
 * several Host headers, for an HTTP/1.1 request without one, and for an unknown Expect header.
 */
export function throwIfMalformed(
  { headers, httpVersion, rawHeaders }: IncomingMessage,
  { headerBytes }: Pick<Limits, 'headerBytes'>,
): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') throw unknownVersion
  const { hosts, bytes } = measureHeaders(rawHeaders)
  if (bytes > headerBytes) throw tooLargeHeaders
  if (hosts > 1) throw severalHosts
  if (hosts === 0 && httpVersion === '1.1') throw missingHost
  if (headers.expect !== undefined && httpVersion === '1.1' && !asksToContinue.test(headers.expect))
    throw unknownExpectation
}

/**
 * Counts the bytes of the header lines, and the Host headers: Node keeps the first of several, but a proxy in front of
 * kith may have used another.
 */
function measureHeaders(rawHeaders: readonly string[]): { hosts: number; bytes: number } {
  let [hosts, bytes] = [0, 0]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    bytes += name.length + ': '.length + rawHeaders[index + 1]!.length + '\r\n'.length
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return { hosts, bytes }
}

// Node's parser reads a line without a version as HTTP/0.9, and accepts HTTP/2.0.
const unknownVersion = new Fault(
  createRefusal('invalid_parameter', 'The only supported versions are HTTP/1.1 and HTTP/1.0.'),
)
export const tooLargeHeaders = new Fault(
  createRefusal('invalid_parameter', 'The headers are too large.', { status: 431 }),
)
const severalHosts = new Fault(createRefusal('invalid_parameter', 'A request must have only one Host header.'))
const missingHost = new Fault(createRefusal('invalid_parameter', 'An HTTP/1.1 request must have a Host header.'))
const unknownExpectation = new Fault(
  createRefusal('invalid_parameter', 'The only supported Expect header is 100-continue.'),
)

/** Throws a Fault of 414 for a path and a query that are too long together. */
export function throwIfTargetTooLong(url = '', { urlBytes }: Pick<Limits, 'urlBytes'>): void {
  // A character has at most three bytes, so kith need not count the bytes of most URLs.
  if (url.length * 3 > urlBytes && Buffer.byteLength(url) > urlBytes)
    refuse('invalid_parameter', `The path and the query may have at most ${urlBytes} bytes.`, { status: 414 })
}

/**
 * Throws a Fault of 414 for a target that is too long, of 415 for an unsupported content encoding, and of 400 for a
 * body other than JSON lines and CSV on a row that takes these.
 */
export function throwIfOverLimits({ headers, url }: IncomingMessage, limits: Limits, { line }: Route): void {
  throwIfTargetTooLong(url, limits)
  if (isOther(headers['content-encoding'], 'identity'))
    refuse('invalid_parameter', 'A body with a Content-Encoding is not supported. Send it without compression.', {
      status: 415,
    })
  if (isOther(headers['transfer-encoding'], 'chunked'))
    refuse('invalid_parameter', 'The only supported Transfer-Encoding is chunked.', { status: 415 })
  const contentType = headers['content-type'] ?? ''
  if (line && !isLines.test(contentType) && !isCsv.test(contentType))
    refuse(
      'invalid_parameter',
      'The body must be sent with Content-Type: application/x-ndjson, one JSON object per line, or with text/csv.',
    )
}

export const isCsv = /^[\t ]*text\/csv[\t ]*(;|$)/i
const isLines = /^[\t ]*application\/x-ndjson[\t ]*(;|$)/i

const isOther = (coding: string | undefined, known: string) =>
  coding !== undefined && coding.trim().toLowerCase() !== known
