import { expect, it } from 'vitest'
import { serveRouter } from '../../../test/support/serve-router.ts'
import { useService } from '../../../test/support/service.ts'
import { documentOf } from '../../openapi/document.ts'
import { routeTable } from '../../process/app.ts'
import { createRouter, registerRoutes } from './router.ts'

const service = useService()
const deprecated = { since: '2027-01-15', sunset: '2028-01-15', see: '/docs/promise' }

it('tells in each response of a deprecated endpoint, and in the OpenAPI document, since when and until when it is there', async () => {
  const { config } = service
  const [row] = routeTable({ config }).filter(({ operationId }) => operationId === 'listJobs')
  const rows = [{ ...row!, deprecated }]
  const router = createRouter()
  registerRoutes(router, config, rows)
  const { address, close } = await serveRouter(service, router)
  const { token } = await service.organization()
  try {
    for (const [headers, status] of [
      [{ Authorization: `Bearer ${token}` }, 200],
      [{}, 401],
    ] as const) {
      const response = await fetch(`${address}/v1/jobs`, { headers })
      expect(response.status).toBe(status)
      expect(response.headers.get('Deprecation')).toBe('@1799971200')
      expect(response.headers.get('Sunset')).toBe('Sat, 15 Jan 2028 00:00:00 GMT')
      expect(response.headers.get('Link')).toBe('</docs/promise>; rel="deprecation"; type="text/html"')
    }
  } finally {
    await close()
  }
  const document = documentOf({
    info: { title: '', version: '', summary: '', description: '' },
    tags: [],
    rows,
    openRows: [],
  })
  expect(document.paths['/v1/jobs']!.get).toMatchObject({
    ...{ deprecated: true, description: expect.stringContaining('It goes on 2028-01-15 at the earliest.') },
  })
})
