import { describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/process/app.ts'
import { useOwnService } from '../support/service.ts'
import { useSharedShop } from '../support/shop.ts'

const service = useOwnService()
const shop = useSharedShop(service)

describe('a batch with `atomic: true`', () => {
  it('returns the error of the first operation that fails', async () => {
    const operations = [
      { op: 'patch', external_id: 'nobody', body: {} },
      { op: 'create', body: { email: 'none' } },
    ]
    expect((await shop.send('POST', '/v1/people/batch', { operations, atomic: true })).status).toBe(404)
  })
})

describe('a batch operation with a text that is too long', () => {
  it('is refused without affecting the other operations', async () => {
    const operations = [
      { op: 'create', body: {} },
      { op: 'create', body: { attribute_values: { a: 'x'.repeat(65_537) } } },
    ]
    const reply = await shop.send('POST', '/v1/people/batch', { operations })
    expect(reply.body.data?.items.map((item: { status: number }) => item.status)).toEqual([201, 400])
  })
})

describe('the OpenAPI document', () => {
  it('declares the body of the related endpoint as required', () => {
    const { requestBody } = openApiDocument(service).paths['/v1/people/{external_id}/related']!.post!
    expect(requestBody).toMatchObject({ required: true })
  })
})

describe('a query string, in which every value is text', () => {
  it('converts the fields of a batch operation to their types', async () => {
    const query = 'operations[0][op]=create&operations[0][body][push_notification_consent]=true'
    const { items } = (await shop.send('POST', `/v1/people/batch?${query}`)).body.data
    expect(items[0]).toMatchObject({ status: 201 })
  })
})
