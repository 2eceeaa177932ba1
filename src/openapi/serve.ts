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
import { docsInitializer, docsPage, docsStyle, homePage } from './pages.ts'

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

// The pages load everything from this service and send requests only to it. The Swagger UI uses inline styles.
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

/** The files that are served from the package swagger-ui-dist, 2 MB in total. Each is read once, on first use. */
const packageFiles = { 'swagger-ui.css': style, 'swagger-ui-bundle.js': script, 'favicon-32x32.png': 'image/png' }
const ownFiles = {
  'style.css': [docsStyle, style],
  'swagger-initializer.js': [docsInitializer(documentRow.path), script],
} as const

const digest = createHash('sha256').update(version)
for (const [text] of Object.values(ownFiles)) digest.update(text)
const staticPath = '/docs/static'
/** The path contains a hash of the contents, so browsers may cache the files forever. */
const versionedPath = `${staticPath}/${digest.digest('hex').slice(0, 12)}`
const cacheHeaders = { 'Cache-Control': 'public, max-age=31536000, immutable' }

const urlOf = (name: string) => `${versionedPath}/${name}`
const page = docsPage({
  style: urlOf('swagger-ui.css'),
  ownStyle: urlOf('style.css'),
  bundle: urlOf('swagger-ui-bundle.js'),
  initializer: urlOf('swagger-initializer.js'),
  icon: urlOf('favicon-32x32.png'),
})

type Documents = { openApi: () => OpenApiDocument; asyncApi: () => object }

/** Serves, without a token, the documents at /openapi.json and /asyncapi.json, the page that displays the first at /docs/api, the documentation at /docs, and a home page at /. */
export function serveDocument(router: Router, { openApi, asyncApi }: Documents): void {
  serveSite(router)
  const serve = (path: string, handle: Handle) => router.add({ method: 'GET', path, handle })
  const serveJson = (path: string, create: () => object) => {
    // Created on first use. All responses that are being sent share this copy.
    let bytes: Buffer | undefined
    serve(path, exchange => {
      bytes ??= Buffer.from(JSON.stringify(create()))
      exchange.send(200, bytes)
    })
  }
  serveJson(documentRow.path, openApi)
  serveJson(asyncDocumentRow.path, asyncApi)
  serve('/', exchange => {
    exchange.varyBy('Accept')
    if (!acceptsHtml(exchange.request)) refuse('not_found', 'There is no such address.')
    sendFile(exchange, homePage, html)
  })
  for (const path of ['/docs/api', '/docs/api/']) serve(path, exchange => sendFile(exchange, page, html))
  const serveStatic = (name: string, handle: Handle) => {
    for (const path of [staticPath, versionedPath]) serve(`${path}/${name}`, handle)
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

/** The policy of a page, whose only inline scripts are those of the build: they set the colour scheme before the page is shown. */
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

/** Serves the documentation at /docs, without a token, if it was built. */
export function serveSite(router: Router, folder = buildFolder): void {
  const files = readBuiltFiles(folder)
  // A page does not change, so its scripts are looked for once.
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
    if (!(await files.has('404.html')))
      refuse(
        'not_found',
        'The documentation is not built. Run `npm run docs`, then start kith again. /docs/api shows the endpoints.',
      )
    if (!acceptsHtml(exchange.request)) refuse('not_found', 'The documentation has no such file.')
    return sendPage(exchange, '404.html', 404)
  }
  for (const path of ['/docs', '/docs/', '/docs/*']) router.add({ method: 'GET', path, handle: send })
}
