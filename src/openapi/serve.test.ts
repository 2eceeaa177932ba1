import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Service, startService } from '../../test/support/service.ts'
import { openApiDocument } from '../app.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const fetchText = async (path: string) => {
  const response = await fetch(new URL(path, `${service.address}/docs`))
  return { status: response.status, headers: response.headers, text: await response.text() }
}

describe('/openapi.json', () => {
  it('is the document of the running service, without a token', async () => {
    const { status, headers, text } = await fetchText('/openapi.json')
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(openApiDocument(service))))
  })
})

describe('/docs', () => {
  it('answers a page without a token, from every address it may have', async () => {
    for (const path of ['/docs', '/docs/']) {
      const { status, headers, text } = await fetchText(path)
      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      expect(headers.get('x-request-id')).toBeTruthy()
      expect(text).toContain('<div id="swagger-ui">')
    }
  })

  it('has all its parts here, and may not ask another host for anything', async () => {
    const { text, headers } = await fetchText('/docs')
    const parts = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!)
    expect(parts.filter(part => part.endsWith('.js')).length).toBeGreaterThan(0)
    for (const part of parts) {
      expect(part).toMatch(/^\/docs\/static\//)
      expect((await fetchText(part)).status).toBe(200)
    }
    const policy = headers.get('content-security-policy')!
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/https?:|\*|upgrade-insecure-requests|unsafe-eval/)
    const styles = await fetchText('/docs/static/swagger-ui.css')
    expect(styles.text).not.toMatch(/url\(["']?(https?:)?\/\/|@import/)
  })

  it('shows the document of this service, whose operations take a bearer token that is pasted', async () => {
    const script = (await fetchText('/docs/static/swagger-initializer.js')).text
    expect(script).toContain("url: '/openapi.json'")
    expect(script).toMatch(/validatorUrl: null/)
    const shown = JSON.parse((await fetchText('/openapi.json')).text)
    expect(shown.components.securitySchemes.bearer).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect(shown.servers[0].url).toBe('/')
    expect(shown.paths['/v1/people'].post.security).toEqual([{ bearer: ['people:write'] }])
  })

  it('leaves the rest of the house as it was: envelopes, tokens, bodies, one line a request', async () => {
    const nowhere = await fetchText('/docs/static/nothing.js')
    expect([nowhere.status, JSON.parse(nowhere.text).error]).toEqual([404, 'not_found'])
    const posted = await fetch(`${service.address}/docs`, { method: 'POST', body: '{' })
    expect([posted.status, JSON.parse(await posted.text()).error]).toEqual([405, 'invalid_parameter'])
    expect((await fetchText('/v1/docs')).status).toBe(401)
    const { send } = await service.organization()
    const created = await send('POST', '/v1/people', 'first_name=a', { 'Content-Type': 'text/plain' })
    expect([created.status, created.body.error]).toEqual([400, 'invalid_parameter'])
    await fetchText('/docs')
    const lines = service.logs.map(line => JSON.parse(line))
    expect(lines.filter(({ msg }) => msg !== 'request')).toEqual([
      expect.objectContaining({ msg: expect.stringContaining('listening') }),
    ])
    expect(lines).toContainEqual(expect.objectContaining({ route: '/docs', status: 200 }))
  })
})
