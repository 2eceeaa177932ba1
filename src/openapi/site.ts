import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { acceptsHtml } from '../http/input/browser.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Router } from '../http/pipeline/router.ts'
import { readBuiltFiles } from '../http/server/built-files.ts'
import { pageHeaders } from '../route/page-headers.ts'
import { refuse } from '../values/errors.ts'

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
