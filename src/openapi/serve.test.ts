import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import { openApiDocument } from '../process/app.ts'

const service = useOwnService()

const fetchText = async (path: string) => {
  const response = await fetch(new URL(path, `${service.address}/docs`))
  return { status: response.status, headers: response.headers, text: await response.text() }
}

describe('/openapi.json', () => {
  it('returns the document of the running service without a token', async () => {
    const { status, headers, text } = await fetchText('/openapi.json')
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(openApiDocument(service))))
  })
})

describe('/', () => {
  const request = (accept: string, method = 'GET') =>
    fetch(`${service.address}/`, { method, headers: { Accept: accept } })

  it('sends a browser a page with links to the console, the documentation and the API', async () => {
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const response = await request(browser)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(response.headers.get('vary')).toContain('Accept')
    const links = [...(await response.text()).matchAll(/href="([^"]+)"/g)].map(([, link]) => link)
    expect(links).toEqual(['/console', '/docs', '/docs/api', '/openapi.json', '/asyncapi.json'])
    expect((await request(browser, 'HEAD')).status).toBe(200)
  })

  it.each(['*/*', 'application/json'])('responds to Accept: %s with 404 in the error format', async accept => {
    const response = await request(accept)
    expect([response.status, JSON.parse(await response.text()).error]).toEqual([404, 'not_found'])
  })
})

describe('/docs/api', () => {
  it('sends a page without a token, with and without a trailing slash', async () => {
    for (const path of ['/docs/api', '/docs/api/']) {
      const { status, headers, text } = await fetchText(path)
      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      expect(headers.get('x-request-id')).toBeTruthy()
      expect(text).toContain('<div id="swagger-ui">')
    }
  })

  it('loads all its files from the service, and its policy forbids other hosts', async () => {
    const { text, headers } = await fetchText('/docs/api')
    const parts = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!)
    expect(parts.filter(part => part.endsWith('.js')).length).toBeGreaterThan(0)
    for (const part of parts) {
      expect(part).toMatch(/^\/docs\/static\/[0-9a-f]{12}\/[\w.-]+$/)
      const { status, headers: ofPart } = await fetchText(part)
      expect([status, ofPart.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
      expect(ofPart.get('content-security-policy')).toBe(headers.get('content-security-policy'))
    }
    const policy = headers.get('content-security-policy')!
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/https?:|\*|upgrade-insecure-requests|unsafe-eval/)
    expect(headers.get('cache-control')).toBe('no-store')
    const styles = await fetchText('/docs/static/swagger-ui.css')
    expect(styles.headers.get('cache-control')).toBe('no-store')
    expect(styles.text).not.toMatch(/url\(["']?(https?:)?\/\/|@import/)
  })

  it('displays the document of the service, whose operations accept a pasted bearer token', async () => {
    const { text } = await fetchText('/docs/api')
    const script = (await fetchText('/docs/static/swagger-initializer.js')).text
    expect(text).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
    expect(script).toContain("docExpansion: 'list'")
    expect(script).toContain("url: '/openapi.json'")
    expect(script).toMatch(/validatorUrl: null/)
    const shown = JSON.parse((await fetchText('/openapi.json')).text)
    expect(shown.components.securitySchemes.bearer).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect(shown.servers[0].url).toBe('/')
    expect(shown.paths['/v1/people'].post.security).toEqual([{ bearer: ['people:write'] }])
  })

  it('is installed with the telemetry of its package disabled', async () => {
    const { scarfSettings } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(scarfSettings).toEqual({ enabled: false })
  })

  it('does not change error formats, authentication, body parsing and logging elsewhere', async () => {
    const missing = await fetchText('/docs/static/nothing.js')
    expect([missing.status, JSON.parse(missing.text).error]).toEqual([404, 'not_found'])
    const posted = await fetch(`${service.address}/docs/api`, { method: 'POST', body: '{' })
    expect([posted.status, JSON.parse(await posted.text()).error]).toEqual([405, 'invalid_parameter'])
    expect((await fetchText('/v1/docs')).status).toBe(401)
    const { send } = await service.organization()
    const created = await send('POST', '/v1/people', 'first_name=a', { 'Content-Type': 'text/plain' })
    expect([created.status, created.body.error]).toEqual([400, 'invalid_parameter'])
    await fetchText('/docs/api')
    const lines = service.logs.map(line => JSON.parse(line))
    expect(lines.filter(({ msg }) => msg !== 'request')).toEqual([
      expect.objectContaining({ msg: expect.stringContaining('listening') }),
    ])
    expect(lines).toContainEqual(expect.objectContaining({ route: '/docs/api', status: 200 }))
  })
})
