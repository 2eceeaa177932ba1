import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exchange, parseResponse } from '../../../test/support/process.ts'
import { type Service, startService } from '../../../test/support/service.ts'

const origin = 'https://app.example'
let service: Service
let open: Service
beforeAll(async () => {
  service = await startService()
  open = await startService({ KITH_CORS_ORIGINS: `http://localhost:5173,${origin}`, KITH_BEHIND_PROXY: '1' })
})
afterAll(async () => {
  await service.stop()
  await open.stop()
})

/** A request with these headers and no other: `fetch` would not send them all. */
async function ask({ address }: Service, method: string, path: string, headers: Record<string, string>) {
  const sent = request(`${address}${path}`, { method, headers })
  sent.end()
  const [response] = (await new Promise<unknown[]>((resolve, reject) => {
    sent.on('response', (...all) => resolve(all)).on('error', reject)
  })) as [import('node:http').IncomingMessage]
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}

describe('an answer', () => {
  it.each(['/healthz', '/readyz', '/v1/people/x', '/nothing', '/%', '/openapi.json', '/.well-known/jwks.json'])(
    'of %s is taken for no other type, and kept by no cache',
    async path => {
      const { headers } = await ask(service, 'GET', path, {})
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
      // It speaks plain HTTP: what a proxy in front promises is not its to say.
      expect(headers['strict-transport-security']).toBeUndefined()
    },
  )

  it('to what is no HTTP says so too', async () => {
    const { head } = parseResponse(await exchange(service.address, 'nonsense\r\n\r\n'))
    expect(head).toContain('X-Content-Type-Options: nosniff')
    expect(head).toContain('Cache-Control: no-store')
  })

  it('that is a page may not be framed, and tells nobody where the reader comes from', async () => {
    for (const path of ['/docs', '/docs/static/swagger-ui.css']) {
      const { status, headers } = await ask(service, 'GET', path, {})
      expect(status).toBe(200)
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      })
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
    }
  })
})

const preflight = (from: string) => ({
  Origin: from,
  'Access-Control-Request-Method': 'PATCH',
  'Access-Control-Request-Headers': 'authorization,content-type',
})
const corsHeaders = (headers: object) =>
  Object.keys(headers).filter(name => name.startsWith('access-control-') || name === 'vary')

describe('a browser of another origin', () => {
  it('is told nothing where no origins are configured, and its preflight wants a token like any request', async () => {
    const asked = await ask(service, 'OPTIONS', '/v1/people/ada', preflight(origin))
    expect([asked.status, corsHeaders(asked.headers)]).toEqual([401, []])
    const { headers } = await ask(service, 'GET', '/v1/people/ada', { Origin: origin })
    expect(corsHeaders(headers)).toEqual([])
  })

  it('may ask without a token where it is configured, and call with one', async () => {
    for (const path of ['/v1/people/ada', '/v1/stacks/orders', '/v1/nothing', '/openapi.json']) {
      const { status, headers, text } = await ask(open, 'OPTIONS', path, preflight(origin))
      expect([status, text, headers['access-control-allow-origin']]).toEqual([204, '', origin])
      expect(headers['access-control-allow-methods']).toContain('PATCH')
      expect(headers['access-control-allow-headers']).toContain('Authorization')
      expect(headers['access-control-allow-credentials']).toBeUndefined()
    }
    const { token, key } = await open.organization()
    expect(key).toBeTruthy()
    for (const headers of [{ Origin: origin }, { Origin: origin, Authorization: `Bearer ${token}` }]) {
      const called = await ask(open, 'GET', '/v1/people/ada', headers)
      expect(called.status).toBe('Authorization' in headers ? 404 : 401)
      expect(called.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
      expect(called.headers['access-control-expose-headers']).toContain('ETag')
    }
  })

  it.each(['https://evil.example', 'https://app.example.evil.example', 'http://app.example', 'null', `${origin}/`])(
    'that is %s is told nothing though others are configured',
    async from => {
      const asked = await ask(open, 'OPTIONS', '/v1/people/ada', preflight(from))
      expect([asked.status, corsHeaders(asked.headers)]).toEqual([401, ['vary']])
      const called = await ask(open, 'GET', '/v1/people/ada', { Origin: from })
      expect(corsHeaders(called.headers)).toEqual(['vary'])
    },
  )
})
