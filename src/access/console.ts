import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { requirePublicHost } from '../http/input/browser.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Config } from '../process/config.ts'
import { pageHeaders } from '../route/page-headers.ts'
import { refuse } from '../values/errors.ts'

/** The folder that `npm run build --workspace console` fills. */
const buildFolder = join(import.meta.dirname, '../../console/dist')

const contentTypes: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The compressed forms that the build writes beside each file, best first. */
const encodings = [
  { name: 'br', extension: '.br' },
  { name: 'gzip', extension: '.gz' },
] as const

// The names of files below assets/ contain a hash of their content.
const forever = { 'Cache-Control': 'public, max-age=31536000, immutable' }
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
 * Adds the pages of the console below /console, without a token: they contain no data. Every address of a page gets the
 * same document, which shows the page that the address names. The files are read from the build on first use.
 */
export function registerConsole(router: Router, config: Config): void {
  const files = new Map<string, Promise<Buffer>>()
  const read = (name: string) => {
    const reading = files.get(name) ?? readFile(join(buildFolder, name))
    files.set(name, reading)
    return reading
  }
  let names: Promise<ReadonlySet<string>> | undefined
  const listed = () => {
    names ??= listFiles()
    return names
  }

  const sendPage = async (exchange: Exchange) => {
    requirePublicHost(exchange.request, config)
    if (!(await listed()).has('index.html')) throwNotBuilt()
    const nonce = randomBytes(16).toString('base64')
    exchange.headers(policyOf(nonce))
    const page = (await read('index.html')).toString('utf8').replaceAll(noncePlaceholder, nonce)
    exchange.send(200, page, 'text/html; charset=utf-8')
  }
  const sendFile = async (exchange: Exchange) => {
    const name = nameOf(exchange.url)
    const known = await listed()
    const contentType = contentTypes[extname(name)]
    // Only names that the build wrote are read, so no address leads out of its folder.
    if (!known.has(name) || contentType === undefined)
      return refuse('not_found', 'The console has no such file. Reload the page: kith was updated.')
    const accepted = String(exchange.request.headers['accept-encoding'] ?? '')
    const encoding = encodings.find(
      ({ name: coding, extension }) => accepts(accepted, coding) && known.has(name + extension),
    )
    exchange.headers(name.startsWith('assets/') ? forever : forAnHour)
    exchange.varyBy('Accept-Encoding')
    if (encoding) exchange.header('Content-Encoding', encoding.name)
    exchange.send(200, await read(name + (encoding?.extension ?? '')), contentType)
  }
  for (const path of ['/console', '/console/', '/console/*']) router.add({ method: 'GET', path, handle: sendPage })
  for (const path of ['/console/assets/*', '/console/icon.svg']) router.add({ method: 'GET', path, handle: sendFile })
}

const nameOf = (url: string) => url.slice('/console/'.length).split('?')[0]!

/** Whether Accept-Encoding names the coding, not with the weight 0. */
const accepts = (header: string, coding: string) =>
  header.split(',').some(part => {
    const [name, ...parameters] = part.trim().split(/\s*;\s*/)
    return name === coding && !parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter))
  })

/** The files of the build, with paths relative to its folder. Empty if the console was not built. */
async function listFiles(): Promise<ReadonlySet<string>> {
  const found = await readdir(buildFolder, { recursive: true }).catch(() => [])
  return new Set(found)
}

function throwNotBuilt(): never {
  refuse(
    'operation_failed',
    'The console is not built. Run `npm run build --workspace console`, then start kith again.',
  )
}
