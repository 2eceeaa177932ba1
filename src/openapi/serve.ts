import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { acceptsHtml } from '../http/input/browser.ts'
import type { Exchange, Handle } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import { readBuiltFiles } from '../http/server/built-files.ts'
import { pageHeaders } from '../route/page-headers.ts'
import type { OpenRoute } from '../route/route.ts'
import { refuse } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import type { OpenApiDocument } from './document.ts'

/** The route of the document itself. */
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

/** The route of the document of webhooks and streams. */
export const asyncDocumentRow: OpenRoute = {
  path: '/asyncapi.json',
  operationId: 'getAsyncApiDocument',
  summary: 'Read the document of webhooks and streams',
  description: 'AsyncAPI 3.0: the messages that kith sends by itself or piece by piece, with their shapes.',
  tag: 'System',
  answer: Type.Object(
    { asyncapi: Type.String(), info: Type.Object({}, { additionalProperties: true }) },
    { additionalProperties: true },
  ),
  enveloped: false,
}

const head = (title: string) => `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
`

/** The script that starts the Swagger UI with the document, and expands the list of operations of every group. */
const docsInitializer = `window.onload = () => SwaggerUIBundle({
  url: '${documentRow.path}',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
})
`

/** A style for phones, because the Swagger UI is designed for wide windows. */
const docsStyle = `*, *::before, *::after { box-sizing: border-box }
body { margin: 0; background: #fafafa }
.swagger-ui .wrapper { padding: 0 16px }
@media (max-width: 640px) {
  .swagger-ui .wrapper { padding: 0 8px }
  .swagger-ui .info { margin: 24px 0 16px; overflow-wrap: anywhere }
  .swagger-ui .scheme-container { margin: 0 0 8px; padding: 12px 0 }
  .swagger-ui .scheme-container .schemes { flex-wrap: wrap; gap: 8px }
  .swagger-ui .scheme-container .servers > label { margin: 0; max-width: 100% }
  .swagger-ui .scheme-container .servers > label select { width: 100%; max-width: 100% }
  .swagger-ui .opblock-tag { flex-wrap: wrap; padding: 8px 0 }
  .swagger-ui .opblock-tag small { flex: 1 1 100%; order: 1; padding: 4px 0 0 }
  .swagger-ui .opblock .opblock-summary { padding: 6px }
  .swagger-ui .opblock .opblock-summary-control { flex-wrap: wrap; min-width: 0 }
  .swagger-ui .opblock .opblock-summary-method { min-width: 64px; padding: 6px 4px; font-size: 12px }
  .swagger-ui .opblock .opblock-summary-path { flex: 1 1 100%; max-width: none; min-width: 0; padding: 0; font-size: 13px; overflow-wrap: anywhere }
  .swagger-ui .opblock .opblock-summary-path-description-wrapper { flex: 1 1 0; flex-wrap: wrap; gap: 2px 8px; min-width: 0; padding: 0 8px }
  .swagger-ui .opblock .opblock-summary-description { flex: 1 1 100%; font-size: 12px }
  .swagger-ui .opblock-section-header { flex-wrap: wrap; gap: 8px; padding: 8px }
  .swagger-ui .opblock-section-header > label { margin: 0 }
  .swagger-ui .table-container, .swagger-ui .responses-inner { padding: 8px }
  .swagger-ui .parameters, .swagger-ui .parameters tbody, .swagger-ui .parameters tr, .swagger-ui .parameters td { display: block; width: 100% }
  .swagger-ui .parameters thead { display: none }
  .swagger-ui .parameters-col_name { padding: 8px 0 0 }
  .swagger-ui .parameters-col_description { padding: 4px 0 8px }
  .swagger-ui .parameters-col_description input, .swagger-ui .parameters-col_description select { max-width: none; width: 100% }
  .swagger-ui .responses-table { table-layout: fixed; width: 100% }
  .swagger-ui .response-col_status { width: 52px }
  .swagger-ui .response-col_description { overflow-wrap: anywhere }
  .swagger-ui .response-col_links, .swagger-ui .responses-table .col_header.response-col_links { display: none }
  .swagger-ui .highlight-code, .swagger-ui .model-box, .swagger-ui .model-box-control { max-width: 100%; overflow-x: auto }
  .swagger-ui .response-control-media-type__accept-message { overflow-wrap: anywhere }
  .swagger-ui .dialog-ux .modal-ux { min-width: 0; width: calc(100vw - 16px); max-width: calc(100vw - 16px) }
  .swagger-ui .auth-container .wrapper { padding: 0 }
  .swagger-ui .auth-container input[type=text], .swagger-ui .auth-container input[type=password] { min-width: 0; width: 100% }
}
`

/** The page at /, for people who open the URL of the service in a browser. */
const homePage = `${head('kith')}\
<style>
body { margin: 0 auto; max-width: 36rem; padding: 2rem 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fafafa }
h1 { font-size: 1.5rem; margin: 0 0 .5rem }
li { margin: .5rem 0 }
a { color: #0b57a4 }
</style>
</head>
<body>
<h1>kith</h1>
<p>A self-hosted contact and record data service. It is running.</p>
<ul>
<li><a href="/console">The console</a>: people, records, consents and operations, for people who do not write code</li>
<li><a href="/docs">The documentation</a>: from the first steps to the operation of the service</li>
<li><a href="/docs/api">The API</a>: every endpoint, to read and to try out</li>
<li><a href="/openapi.json">The OpenAPI document</a>: the same for programs</li>
<li><a href="/asyncapi.json">The AsyncAPI document</a>: webhooks and streams, for programs</li>
</ul>
</body>
</html>
`

// The pages load everything from this service, and send requests only to it. The Swagger UI uses inline styles.
const securityHeaders = pageHeaders([
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
])

const require = createRequire(import.meta.url)
const { version } = require('swagger-ui-dist/package.json') as { version: string }
const packageFolder = dirname(require.resolve('swagger-ui-dist/package.json'))

const html = 'text/html; charset=utf-8'
const script = 'text/javascript; charset=utf-8'
const style = 'text/css; charset=utf-8'

/** The files of the package swagger-ui-dist that kith serves, 2 MB in total. Each is read once, at its first use. */
const packageFiles = { 'swagger-ui.css': style, 'swagger-ui-bundle.js': script, 'favicon-32x32.png': 'image/png' }
const ownFiles = { 'style.css': [docsStyle, style], 'swagger-initializer.js': [docsInitializer, script] } as const

const digest = createHash('sha256').update(version)
for (const [text] of Object.values(ownFiles)) digest.update(text)
const staticPath = '/docs/static'
/** The path contains a hash of the contents, so browsers may cache the files forever. */
const versionedPath = `${staticPath}/${digest.digest('hex').slice(0, 12)}`
const cacheHeaders = { 'Cache-Control': 'public, max-age=31536000, immutable' }

const urlOf = (name: string) => `${versionedPath}/${name}`
/** The page at /docs/api: the Swagger UI. */
const docsPage = `${head('kith: API')}\
<link rel="stylesheet" href="${urlOf('swagger-ui.css')}">
<link rel="stylesheet" href="${urlOf('style.css')}">
<link rel="icon" type="image/png" href="${urlOf('favicon-32x32.png')}">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The same document is at /openapi.json.</noscript>
<script src="${urlOf('swagger-ui-bundle.js')}"></script>
<script src="${urlOf('swagger-initializer.js')}"></script>
</body>
</html>
`

type Documents = { openApi: () => OpenApiDocument; asyncApi: () => object }

/**
 * Serves, without a token, the documents at /openapi.json and /asyncapi.json, the page of the first at /docs/api, the
 * documentation at /docs, and a home page at /.
 */
export function serveDocument(router: Router, { openApi, asyncApi }: Documents): void {
  serveSite(router)
  const serveJson = (path: string, create: () => object) => {
    // The document is created at its first use. All responses share this copy.
    let bytes: Buffer | undefined
    router.get(path, exchange => {
      bytes ??= Buffer.from(JSON.stringify(create()))
      exchange.send(200, bytes)
    })
  }
  serveJson(documentRow.path, openApi)
  serveJson(asyncDocumentRow.path, asyncApi)
  router.get('/', exchange => {
    exchange.varyBy('Accept')
    if (!acceptsHtml(exchange.request)) refuse('not_found', 'There is no such address.')
    sendFile(exchange, homePage, html)
  })
  for (const path of ['/docs/api', '/docs/api/']) router.get(path, exchange => sendFile(exchange, docsPage, html))
  const serveStatic = (name: string, handle: Handle) => {
    for (const path of [staticPath, versionedPath]) router.get(`${path}/${name}`, handle)
  }
  for (const [name, [text, contentType]] of Object.entries(ownFiles))
    serveStatic(name, exchange => sendFile(exchange, text, contentType))
  for (const [name, contentType] of Object.entries(packageFiles)) {
    let reading: Promise<Buffer> | undefined
    serveStatic(name, async exchange => {
      reading ??= readFile(join(packageFolder, name))
      sendFile(exchange, await reading, contentType)
    })
  }
}

function sendFile(exchange: Exchange, content: string | Buffer, contentType: string) {
  exchange.headers(securityHeaders)
  if (exchange.url.startsWith(versionedPath)) exchange.headers(cacheHeaders)
  exchange.send(200, content, contentType)
}

/** The folder that `npm run docs` fills. */
const buildFolder = join(import.meta.dirname, '../../docs/dist')

/**
 * The content security policy of a page. It allows only the build's inline scripts, which set the color scheme before
 * the page is shown.
 */
const policyOf = (page: string) => {
  const scripts = [...page.matchAll(/<script[^>]*>([^<]+)<\/script>/g)].map(
    ([, script]) => `'sha256-${createHash('sha256').update(script!).digest('base64')}'`,
  )
  return pageHeaders([
    "default-src 'none'",
    `script-src ${["'self'", ...scripts].join(' ')}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ])
}

/** Serves the documentation at /docs, without a token. If it was not built, /docs shows the page of /docs/api. */
export function serveSite(router: Router, folder = buildFolder): void {
  const files = readBuiltFiles(folder)
  // A page does not change, so its scripts are searched once.
  const policies = new Map<string, Promise<Record<string, string>>>()
  const policyFor = (name: string) => {
    const policy = policies.get(name) ?? files.read(name).then(page => policyOf(page.toString('utf8')))
    policies.set(name, policy)
    return policy
  }
  const sendPage = async (exchange: Exchange, name: string, status?: number) => {
    exchange.headers(await policyFor(name))
    await files.send(exchange, name, status)
  }
  const send = async (exchange: Exchange) => {
    const name = exchange.url.split('?')[0]!.slice('/docs/'.length)
    const page = name === '' || name.endsWith('/') ? `${name}index.html` : `${name}.html`
    if (await files.has(page)) return sendPage(exchange, page)
    if (!name.endsWith('.html') && (await files.has(name))) return files.send(exchange, name)
    if (page === 'index.html') return sendFile(exchange, docsPage, html)
    if (!(await files.has('404.html')))
      refuse(
        'not_found',
        'The documentation is not built. Run `npm run docs`, then start kith again. /docs/api shows the endpoints.',
      )
    if (!acceptsHtml(exchange.request)) refuse('not_found', 'The documentation has no such file.')
    return sendPage(exchange, '404.html', 404)
  }
  for (const path of ['/docs', '/docs/', '/docs/*']) router.get(path, send)
}
