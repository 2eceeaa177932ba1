import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exchange, parseResponse } from '../../../test/support/process.ts'
import { type Service, startService, useService } from '../../../test/support/service.ts'

const origin = 'https://app.example'
const service = useService()
let open: Service
beforeAll(async () => {
  open = await startService({ KITH_CORS_ORIGINS: `http://localhost:5173,${origin}`, KITH_BEHIND_PROXY: '1' })
})
afterAll(async () => {
  await open.stop()
})

/** Sends a request with exactly these headers. `fetch` would not send all of them. */
async function send({ address }: Service, method: string, path: string, headers: Record<string, string>) {
  const sent = request(`${address}${path}`, { method, headers })
  sent.end()
  const [response] = (await new Promise<unknown[]>((resolve, reject) => {
    sent.on('response', (...all) => resolve(all)).on('error', reject)
  })) as [import('node:http').IncomingMessage]
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}

describe('a response', () => {
  it.each(['/healthz', '/readyz', '/v1/people/x', '/nothing', '/%', '/openapi.json', '/.well-known/jwks.json'])(
    'of %s forbids type sniffing and caching',
    async path => {
      const { headers } = await send(service, 'GET', path, {})
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
      // This service serves plain HTTP. The proxy in front sets Strict-Transport-Security.
      expect(headers['strict-transport-security']).toBeUndefined()
    },
  )

  it('to input that is not HTTP has these headers too', async () => {
    const { head } = parseResponse(await exchange(service.address, 'nonsense\r\n\r\n'))
    expect(head).toContain('X-Content-Type-Options: nosniff')
    expect(head).toMatch(/\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/)
    expect(head).toContain('Cache-Control: no-store')
  })

  it('to TRACE is 405, and repeats nothing of the request', async () => {
    const { status, headers, text } = await send(service, 'TRACE', '/healthz', { 'X-Secret': 'canary' })
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
    expect(text).not.toContain('canary')
  })

  it('that is a page forbids framing and sends no referrer', async () => {
    for (const path of ['/docs/api', '/docs/static/swagger-ui.css']) {
      const { status, headers } = await send(service, 'GET', path, {})
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

const preflight = (origin: string) => ({
  Origin: origin,
  'Access-Control-Request-Method': 'PATCH',
  'Access-Control-Request-Headers': 'authorization,content-type',
})
const corsHeaders = (headers: object) =>
  Object.keys(headers).filter(name => name.startsWith('access-control-') || name === 'vary')

describe('a browser of another origin', () => {
  it('gets no CORS headers if no origins are configured, and its preflight needs a token like any request', async () => {
    const preflighted = await send(service, 'OPTIONS', '/v1/people/ada', preflight(origin))
    expect([preflighted.status, corsHeaders(preflighted.headers)]).toEqual([401, []])
    const { headers } = await send(service, 'GET', '/v1/people/ada', { Origin: origin })
    expect(corsHeaders(headers)).toEqual([])
  })

  it('may send a preflight without a token and a call with one if it is configured', async () => {
    for (const path of ['/v1/people/ada', '/v1/stacks/orders', '/v1/nothing', '/openapi.json']) {
      const { status, headers, text } = await send(open, 'OPTIONS', path, preflight(origin))
      expect([status, text, headers['access-control-allow-origin']]).toEqual([204, '', origin])
      expect(headers['access-control-allow-methods']).toContain('PATCH')
      expect(headers['access-control-allow-headers']).toContain('Authorization')
      expect(headers['access-control-allow-credentials']).toBeUndefined()
    }
    const { token, key } = await open.organization()
    expect(key).toBeTruthy()
    for (const headers of [{ Origin: origin }, { Origin: origin, Authorization: `Bearer ${token}` }]) {
      const called = await send(open, 'GET', '/v1/people/ada', headers)
      expect(called.status).toBe('Authorization' in headers ? 404 : 401)
      expect(called.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
      expect(called.headers['access-control-expose-headers']).toContain('ETag')
    }
  })

  it.each(['https://evil.example', 'https://app.example.evil.example', 'http://app.example', 'null', `${origin}/`])(
    'that is %s gets no CORS headers if only others are configured',
    async otherOrigin => {
      const preflighted = await send(open, 'OPTIONS', '/v1/people/ada', preflight(otherOrigin))
      expect([preflighted.status, corsHeaders(preflighted.headers)]).toEqual([401, ['vary']])
      const called = await send(open, 'GET', '/v1/people/ada', { Origin: otherOrigin })
      expect(corsHeaders(called.headers)).toEqual(['vary'])
    },
  )
})
