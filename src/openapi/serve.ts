import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Type } from 'typebox'
import type { Exchange, Place } from '../http/exchange.ts'
import type { OpenRoute } from '../http/route.ts'
import type { Router } from '../http/router.ts'
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

/** What helmet sets for pages. */
const page_headers = {
  'Content-Security-Policy': content_security_policy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
}

const static_path = '/docs/static'

// What swagger-ui-dist brings would tell a third party of every installation; these are the same files.
const shipped = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'index.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}

const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>kith</title>
<link rel="stylesheet" href="${static_path}/swagger-ui.css">
<link rel="stylesheet" href="${static_path}/index.css">
<link rel="icon" type="image/png" href="${static_path}/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="${static_path}/swagger-ui-bundle.js"></script>
<script src="${static_path}/swagger-initializer.js"></script>
</body>
</html>
`

const initializer = `window.onload = () => SwaggerUIBundle({
  url: '${document_row.path}',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  displayRequestDuration: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
})
`

/** Serves the document at /openapi.json, and the page that shows it at /docs. Neither wants a token. */
export function serveDocument(places: Router, document: OpenApiDocument): void {
  // One copy for all answers that clients have not read yet.
  const bytes = Buffer.from(JSON.stringify(document))
  const serve = (path: string, handle: Place['handle']) => places.add({ method: 'GET', path, handle })
  const html = 'text/html; charset=utf-8'
  const script = 'text/javascript; charset=utf-8'
  serve(document_row.path, exchange => exchange.send(200, bytes))
  for (const path of ['/docs', '/docs/']) serve(path, exchange => sendPart(exchange, page, html))
  serve(`${static_path}/swagger-initializer.js`, exchange => sendPart(exchange, initializer, script))
  const require = createRequire(import.meta.url)
  for (const [name, content_type] of Object.entries(shipped)) {
    const file = require.resolve(`@fastify/swagger-ui/static/${name}`)
    let read: Promise<Buffer> | undefined
    const readOnce = () => {
      read ??= readFile(file)
      return read
    }
    serve(`${static_path}/${name}`, async exchange => sendPart(exchange, await readOnce(), content_type))
  }
}

function sendPart(exchange: Exchange, part: string | Buffer, content_type: string) {
  exchange.headers(page_headers)
  exchange.send(200, part, content_type)
}
