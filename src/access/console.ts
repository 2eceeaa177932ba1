import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { requirePublicHost } from '../http/input/browser.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import { readBuiltFiles } from '../http/server/built-files.ts'
import type { Config } from '../process/config.ts'
import { pageHeaders } from '../route/page-headers.ts'
import { refuse } from '../values/errors.ts'

/** The folder that `npm run build --workspace console` fills. */
const buildFolder = join(import.meta.dirname, '../../console/dist')

const forAnHour = { 'Cache-Control': 'public, max-age=3600' }

const noncePlaceholder = '__NONCE__'

const policyOf = (nonce: string) =>
  pageHeaders([
    "default-src 'none'",
    "script-src 'self'",
    // React Aria adds one style element, which carries the nonce of the page.
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ])

/**
 * Adds the pages of the console below /console. They contain no data, so they need no token. Every URL of a page gets
 * the same document, which shows the page of the URL. The files are read from the build at their first use.
 */
export function registerConsole(router: Router, config: Config): void {
  const files = readBuiltFiles(buildFolder)
  const sendPage = async (exchange: Exchange) => {
    requirePublicHost(exchange.request, config)
    if (!(await files.has('index.html'))) throwNotBuilt()
    const nonce = randomBytes(16).toString('base64')
    exchange.headers(policyOf(nonce))
    const page = (await files.read('index.html')).toString('utf8').replaceAll(noncePlaceholder, nonce)
    exchange.send(200, page, 'text/html; charset=utf-8')
  }
  const sendFile = async (exchange: Exchange) => {
    const name = nameOf(exchange.url)
    if (!(await files.has(name)))
      return refuse('not_found', 'The console has no such file. Reload the page: kith was updated.')
    exchange.headers(forAnHour)
    await files.send(exchange, name)
  }
  for (const path of ['/console', '/console/', '/console/*']) router.get(path, sendPage)
  for (const path of ['/console/assets/*', '/console/icon.svg']) router.get(path, sendFile)
}

const nameOf = (url: string) => url.slice('/console/'.length).split('?')[0]!

function throwNotBuilt(): never {
  refuse(
    'operation_failed',
    'The console is not built. Run `npm run build --workspace console`, then start kith again.',
  )
}
