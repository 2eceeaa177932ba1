import type { Config } from '../../process/config.ts'
import type { Route } from '../../route/route.ts'
import type { Exchange } from '../pipeline/exchange.ts'

/**
 * The headers of every response. JSON is neither rendered nor framed, so only two of helmet's twelve headers matter:
 * browsers must not guess another type, and caches must not store the data. The two cost 0.3 µs a request, the twelve
 * 3.3 µs.
 */
const baseHeaders = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' }

/** Browsers use HTTPS only, for a year. kith sends this only if it terminates TLS itself. */
const httpsHeaders = { 'Strict-Transport-Security': 'max-age=31536000' }

/** The constant headers of responses, by name. */
export const securityHeaders = ({ tls }: Pick<Config, 'tls'>): Record<string, string> => ({
  ...baseHeaders,
  ...(tls && httpsHeaders),
})

/** The headers of a deprecated endpoint: RFC 9745 and RFC 8594. */
export const deprecationHeaders = ({
  since,
  sunset,
  see,
}: NonNullable<Route['deprecated']>): Record<string, string> => ({
  Deprecation: `@${Date.parse(since) / 1_000}`,
  Sunset: new Date(sunset).toUTCString(),
  Link: `<${see}>; rel="deprecation"; type="text/html"`,
})

// A browser caches a preflight for this time. Chromium's own limit is 7200 s.
const preflightSeconds = 600

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, If-Match, If-None-Match, If-Sequence, Last-Event-ID, Prefer, Idempotency-Key, X-Request-Id, ' +
    'Mcp-Method, Mcp-Name, Mcp-Protocol-Version',
  'Access-Control-Max-Age': String(preflightSeconds),
}

const callHeaders = {
  'Access-Control-Expose-Headers': [
    'Allow',
    'Deprecation',
    'ETag',
    'Idempotency-Replayed',
    'Kith-Log-Head',
    'Kith-Log-Id',
    'Kith-Other-Holders',
    'Location',
    'Preference-Applied',
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
    'Sunset',
    'WWW-Authenticate',
    'X-Kith-Sequence',
    'X-Kith-Warning',
    'X-Request-Id',
  ].join(', '),
}

/**
 * Returns a function that sets the CORS headers for pages of these origins. It answers a preflight, which needs no
 * token, and returns true. Otherwise it returns false. Without origins it sets no header, so browsers refuse the calls.
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
