import type { Exchange } from '../pipeline/exchange.ts'

// So long a browser need not ask again, in seconds; Chromium's own limit is 7200.
const preflightSeconds = 600

const ofPreflights = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, If-Match, Prefer, Idempotency-Key, X-Request-Id',
  'Access-Control-Max-Age': String(preflightSeconds),
}

const ofCalls = {
  'Access-Control-Expose-Headers': [
    'Allow',
    'ETag',
    'Idempotency-Replayed',
    'Location',
    'Preference-Applied',
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
    'WWW-Authenticate',
    'X-Request-Id',
  ].join(', '),
}

/**
 * Lets web pages of these origins call the service, and answers their preflights without a token: then it says true.
 * Without origins nothing is said: a browser is refused by the absence of headers. Tokens travel in a header, so no cookies.
 */
export function corsHandler(origins: readonly string[]): (exchange: Exchange) => boolean {
  if (origins.length === 0) return () => false
  const allowed = new Set(origins)
  return exchange => {
    const { method, headers } = exchange.request
    exchange.header('Vary', 'Origin')
    if (headers.origin === undefined || !allowed.has(headers.origin)) return false
    exchange.header('Access-Control-Allow-Origin', headers.origin)
    const asksBefore = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
    exchange.headers(asksBefore ? ofPreflights : ofCalls)
    if (asksBefore) exchange.sendNothing(204)
    return asksBefore
  }
}
