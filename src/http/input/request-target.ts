/**
 * The one reading of a request's target, which the router, the parameters and the refusals share. The usual form passes
 * as it is. The absolute form (RFC 9112, 3.2.2) means its path; a first segment that is `v1` in escapes is `v1`; a segment
 * that is not percent-encoded UTF-8 becomes a text that no parameter can be, so that its refusal comes in its turn.
 */
export function parseTarget(target: string): string {
  const local = target.startsWith('/') ? target : withoutAuthority(target)
  if (!local.includes('%')) return local
  const end = local.search(/[?#]|$/)
  const path = local.slice(0, end)
  return (isEncoded(path) ? path : markMalformed(path)).replace(/^\/[^/]*/, readVersion) + local.slice(end)
}

function withoutAuthority(target: string): string {
  const authority = /^https?:\/\/[^/?#]*/i.exec(target)
  if (!authority) return target
  const local = target.slice(authority[0].length)
  return local.startsWith('/') ? local : `/${local}`
}

const readVersion = (segment: string) => (isEncoded(segment) && decodeURIComponent(segment) === '/v1' ? '/v1' : segment)

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

// Not ASCII, which a parameter must be.
const malformed = '\u00ff'

const markMalformed = (path: string) =>
  path
    .split('/')
    .map(segment => (isEncoded(segment) ? segment : malformed))
    .join('/')
