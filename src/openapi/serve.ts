import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Type } from 'typebox'
import { fail } from '../errors.ts'
import type { Endpoint, Exchange } from '../http/pipeline/exchange.ts'
import type { OpenRoute } from '../http/pipeline/route.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { OpenApiDocument } from './document.ts'
import { docsInitializer, docsPage, docsStyle, homePage } from './pages.ts'

/** The document's own address. */
export const documentRow: OpenRoute = {
  path: '/openapi.json',
  operationId: 'getOpenApiDocument',
  summary: 'Read this document',
  tag: 'System',
  answer: Type.Object(
    { openapi: Type.String(), info: Type.Object({}, { additionalProperties: true }) },
    { additionalProperties: true },
  ),
  enveloped: false,
}

// Everything comes from this service, and goes to it. The page styles itself in line.
const contentSecurityPolicy = [
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
const pageHeaders = {
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
}

const require = createRequire(import.meta.url)
const { version } = require('swagger-ui-dist/package.json') as { version: string }

const html = 'text/html; charset=utf-8'
const script = 'text/javascript; charset=utf-8'
const style = 'text/css; charset=utf-8'

/** Served from the package, each read once: 2 MB in all. */
const shipped = { 'swagger-ui.css': style, 'swagger-ui-bundle.js': script, 'favicon-32x32.png': 'image/png' }
const own = {
  'style.css': [docsStyle, style],
  'swagger-initializer.js': [docsInitializer(documentRow.path), script],
} as const

const digest = createHash('sha256').update(version)
for (const [text] of Object.values(own)) digest.update(text)
const staticPath = '/docs/static'
/** A part with another content has another address, so a browser may keep it. */
const versionedPath = `${staticPath}/${digest.digest('hex').slice(0, 12)}`
const kept = { 'Cache-Control': 'public, max-age=31536000, immutable' }

const part = (name: string) => `${versionedPath}/${name}`
const page = docsPage({
  style: part('swagger-ui.css'),
  ownStyle: part('style.css'),
  bundle: part('swagger-ui-bundle.js'),
  initializer: part('swagger-initializer.js'),
  icon: part('favicon-32x32.png'),
})

/** Serves the document at /openapi.json, the page that shows it at /docs, and at / a page that leads there. None wants a token. */
export function serveDocument(places: Router, document: OpenApiDocument): void {
  // One copy for all answers that clients have not read yet.
  const bytes = Buffer.from(JSON.stringify(document))
  const serve = (path: string, handle: Endpoint['handle']) => places.add({ method: 'GET', path, handle })
  serve(documentRow.path, exchange => exchange.send(200, bytes))
  serve('/', exchange => {
    exchange.header('Vary', 'Accept')
    if (!takesHtml(exchange)) fail('not_found', 'There is no such address.')
    sendPart(exchange, homePage, html)
  })
  for (const path of ['/docs', '/docs/']) serve(path, exchange => sendPart(exchange, page, html))
  const serveStatic = (name: string, handle: Endpoint['handle']) => {
    for (const path of [staticPath, versionedPath]) serve(`${path}/${name}`, handle)
  }
  for (const [name, [text, contentType]] of Object.entries(own))
    serveStatic(name, exchange => sendPart(exchange, text, contentType))
  for (const [name, contentType] of Object.entries(shipped)) {
    let reading: Promise<Buffer> | undefined
    serveStatic(name, async exchange => {
      reading ??= readFile(require.resolve(`swagger-ui-dist/${name}`))
      sendPart(exchange, await reading, contentType)
    })
  }
}

/** Browsers name the type; curl and the like take anything. */
const takesHtml = ({ request }: Exchange) => /\btext\/html\b/i.test(request.headers.accept ?? '')

function sendPart(exchange: Exchange, part: string | Buffer, contentType: string) {
  exchange.headers(pageHeaders)
  if (exchange.url.startsWith(versionedPath)) exchange.headers(kept)
  exchange.send(200, part, contentType)
}
