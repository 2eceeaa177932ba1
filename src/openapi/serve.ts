import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { OpenRoute } from '../http/route.ts'
import type { OpenApiDocument } from './document.ts'

/** The document's own address. */
export const document_row: OpenRoute = {
  path: '/openapi.json',
  operation_id: 'getOpenApiDocument',
  summary: 'Read this document',
  tag: 'System',
  answer: Type.Object(
    { openapi: Type.String(), info: Type.Object({}, { additionalProperties: true }) },
    { additionalProperties: true },
  ),
  enveloped: false,
}

// Everything comes from this service, and goes to it. The page styles itself in line.
const content_security_policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** What helmet sets for pages, beside the policy above. */
const page_headers = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
}

/** Serves the document at /openapi.json, and the page that shows it at /docs. Neither wants a token. */
export function serveDocument(server: FastifyInstance, document: OpenApiDocument): void {
  const text = JSON.stringify(document)
  server.get(document_row.path, (_request, reply) => reply.type('application/json; charset=utf-8').send(text))
  server.register(swagger, { mode: 'static', specification: { document: document as never } })
  server.register(async docs => {
    docs.addHook('onRequest', (_request, reply, done) => {
      reply.headers(page_headers)
      done()
    })
    docs.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: content_security_policy,
      theme: { title: 'kith' },
      // Without the bar that loads documents from elsewhere.
      uiConfig: { layout: 'BaseLayout', docExpansion: 'none', displayRequestDuration: true } as never,
    })
  })
}
