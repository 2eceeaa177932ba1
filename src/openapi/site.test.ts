import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { makeFolder } from '../../test/support/process.ts'
import { serveRouter } from '../../test/support/serve-router.ts'
import { useService } from '../../test/support/service.ts'
import { createRouter } from '../http/pipeline/router.ts'
import { serveSite } from './serve.ts'

const service = useService()
const script = 'document.documentElement.classList.add("dark")'
const page = (title: string) =>
  `<title>${title}</title><script id="scheme">${script}</script><script src="a.js"></script>`

/** Serves a folder as the site. */
async function serve(files: Record<string, string>) {
  const folder = join(await makeFolder(), 'dist')
  await mkdir(join(folder, 'assets'), { recursive: true })
  await writeFile(join(folder, '../secret.html'), 'secret')
  for (const [name, text] of Object.entries(files))
    await writeFile(join(folder, `${name}.br`), brotliCompressSync(text))
  const router = createRouter()
  serveSite(router, folder)
  const { address, close } = await serveRouter(service, router)
  const get = (path: string, headers: Record<string, string> = {}) => fetch(`${address}${path}`, { headers })
  return { get, close }
}

it('the documentation has a page at its name, and files that browsers keep, compressed or not', async () => {
  const files = { 'index.html': page('Start'), 'keys.html': page('Keys'), 'assets/a.1.js': 'let a' }
  const { get, close } = await serve({ ...files, '404.html': page('None') })
  for (const [path, title] of [
    ['/docs', 'Start'],
    ['/docs/', 'Start'],
    ['/docs/keys', 'Keys'],
    ['/docs/keys?from=a', 'Keys'],
  ] as const) {
    for (const encoding of ['br', 'gzip']) {
      const response = await get(path, { 'Accept-Encoding': encoding })
      expect([response.status, response.headers.get('content-encoding')]).toEqual([
        200,
        encoding === 'br' ? 'br' : null,
      ])
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(await response.text()).toContain(`<title>${title}</title>`)
    }
  }
  const file = await get('/docs/assets/a.1.js', { 'Accept-Encoding': 'identity' })
  expect([await file.text(), file.headers.get('cache-control')]).toEqual([
    'let a',
    'public, max-age=31536000, immutable',
  ])
  await close()
})

it('the policy of a page of the documentation allows its own inline script, and nothing of another host', async () => {
  const { get, close } = await serve({ 'index.html': page('Start') })
  const policy = (await get('/docs')).headers.get('content-security-policy')!
  const hash = createHash('sha256').update(script).digest('base64')
  expect(policy).toContain(`script-src 'self' 'sha256-${hash}';`)
  expect(policy).not.toMatch(/unsafe|https?:|\*/)
  await close()
})

it('the documentation has no other files: a browser gets its page for that, a program the usual error', async () => {
  const { get, close } = await serve({ 'index.html': page('Start'), '404.html': page('None') })
  for (const path of [
    '/docs/none',
    '/docs/..%2fsecret',
    '/docs/assets/none.js',
    '/docs/index.html',
    '/docs/index.html.br',
  ]) {
    const shown = await get(path, { Accept: 'text/html' })
    expect([path, shown.status, (await shown.text()).slice(0, 19)]).toEqual([path, 404, '<title>None</title>'])
    const told = await get(path)
    expect([told.status, await told.json()]).toEqual([404, expect.objectContaining({ error: 'not_found' })])
  }
  await close()
})

it('a checkout whose documentation is not built shows the endpoints at /docs, and says elsewhere how to build it', async () => {
  const { get, close } = await serve({})
  for (const Accept of ['text/html', '*/*']) {
    for (const path of ['/docs', '/docs/']) {
      const response = await get(path, { Accept })
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      expect(await response.text()).toContain('<div id="swagger-ui">')
    }
    const response = await get('/docs/first-steps', { Accept })
    expect(response.status).toBe(404)
    expect(await response.text()).toContain('Run `npm run docs`')
  }
  await close()
})
