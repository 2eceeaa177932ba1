import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'

const service = useService()
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${service.address}${path}`, { headers, redirect: 'manual' })

it('every address below /console shows the document of the console, under a policy without inline code', async () => {
  for (const path of ['/console', '/console/', '/console/people/ada?x=1', '/console/people/%3Cscript%3E']) {
    const response = await get(path)
    const policy = response.headers.get('content-security-policy')!
    const nonce = /'nonce-([^']+)'/.exec(policy)![1]!
    const page = await response.text()
    expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-store',
    ])
    expect(page).toContain(`nonce="${nonce}"`)
    expect(page).not.toContain('__NONCE__')
    expect(policy).toContain("script-src 'self';")
    expect(policy).not.toContain('unsafe')
    expect(page.match(/<script(?![^>]* src=)/g)).toBeNull()
  }
})

it('gives every page a nonce of its own', async () => {
  const policies = await Promise.all(
    [1, 2].map(async () => (await get('/console')).headers.get('content-security-policy')),
  )
  expect(policies[0]).not.toBe(policies[1])
})

it('files of the build are compressed in advance, and browsers keep them', async () => {
  const page = await (await get('/console')).text()
  const [script] = /\/console\/assets\/[\w-]+\.js/.exec(page)!
  const plain = await get(script, { 'Accept-Encoding': 'identity' })
  const content = await plain.text()
  expect([plain.status, plain.headers.get('content-type'), plain.headers.get('cache-control')]).toEqual([
    200,
    'text/javascript; charset=utf-8',
    'public, max-age=31536000, immutable',
  ])
  for (const [accepted, encoding] of [
    ['gzip, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['zstd', null],
  ] as const) {
    const response = await get(script, { 'Accept-Encoding': accepted })
    expect([accepted, response.headers.get('content-encoding'), response.headers.get('vary')]).toEqual([
      accepted,
      encoding,
      'Accept-Encoding',
    ])
    expect(await response.text()).toBe(content)
  }
})

it.each([
  '/console/assets/missing.js',
  '/console/assets/..%2findex.html',
  '/console/assets/../../package.json',
  '/console/assets/index.html',
])('%s gives no file that the build did not write there', async path => {
  const response = await get(path)
  const text = await response.text()
  expect(text).not.toContain('"workspaces"')
  if (response.headers.get('content-type') !== 'text/html; charset=utf-8') expect(response.status).toBe(404)
})
