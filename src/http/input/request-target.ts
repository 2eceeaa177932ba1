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
  return (isDecodable(path) ? path : markMalformed(path)).replace(/^\/[^/]*/, normalizeVersion) + local.slice(end)
}

function withoutAuthority(target: string): string {
  const authority = /^https?:\/\/[^/?#]*/i.exec(target)
  if (!authority) return target
  const local = target.slice(authority[0].length)
  return local.startsWith('/') ? local : `/${local}`
}

const normalizeVersion = (segment: string) =>
  isDecodable(segment) && decodeURIComponent(segment) === '/v1' ? '/v1' : segment

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

// Parameters must be ASCII, so none accepts this.
const malformedSegment = '\u00ff'

const markMalformed = (path: string) =>
  path
    .split('/')
    .map(segment => (isDecodable(segment) ? segment : malformedSegment))
    .join('/')
