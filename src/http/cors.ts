import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'

// So long a browser need not ask again, in seconds; Chromium's own limit is 7200.
const preflight_seconds = 600

/**
 * Lets web pages of these origins call the service, and answers their preflights without a token. Without origins
 * nothing is registered: a browser is refused by the absence of headers. Tokens travel in a header, so no cookies.
 */
export function allowOrigins(server: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  const allowed = new Set(origins)
  server.register(cors, {
    origin: (origin, answer) => answer(null, origin !== undefined && allowed.has(origin)),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: ['Authorization', 'Content-Type', 'If-Match', 'Prefer', 'Idempotency-Key', 'X-Request-Id'],
    exposedHeaders: [
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
    ],
    maxAge: preflight_seconds,
    hideOptionsRoute: true,
  })
}
