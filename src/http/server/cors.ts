import type { Exchange } from '../pipeline/exchange.ts'

// A browser caches a preflight for this time. Chromium's own limit is 7200 s.
const preflightSeconds = 600

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, If-Match, If-Sequence, Last-Event-ID, Prefer, Idempotency-Key, X-Request-Id',
  'Access-Control-Max-Age': String(preflightSeconds),
}

const callHeaders = {
  'Access-Control-Expose-Headers': [
    'Allow',
    'ETag',
    'Idempotency-Replayed',
    'Kith-Log-Head',
    'Kith-Log-Id',
    'Location',
    'Preference-Applied',
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
    'WWW-Authenticate',
    'X-Kith-Sequence',
    'X-Kith-Warning',
    'X-Request-Id',
  ].join(', '),
}

/**
 * Returns a function that sets the CORS headers for pages of these origins. It answers a preflight, which needs no
 * token, and returns true; otherwise it returns false. Without origins it sets no header, so browsers refuse the calls.
 * Tokens travel in a header, so credentials are not allowed.
 */
export function createCorsHandler(origins: readonly string[]): (exchange: Exchange) => boolean {
  if (origins.length === 0) return () => false
  const allowed = new Set(origins)
  return exchange => {
    const { method, headers } = exchange.request
    exchange.header('Vary', 'Origin')
    if (headers.origin === undefined || !allowed.has(headers.origin)) return false
    exchange.header('Access-Control-Allow-Origin', headers.origin)
    const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
    exchange.headers(isPreflight ? preflightHeaders : callHeaders)
    if (isPreflight) exchange.sendNothing(204)
    return isPreflight
  }
}
