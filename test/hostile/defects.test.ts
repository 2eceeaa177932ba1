import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'
import { makeShop, type Shop } from '../support/writes.ts'

let service: Service
let shop: Shop
beforeAll(async () => {
  service = await startService()
  shop = await makeShop(service)
})
afterAll(() => service.stop())

// What the fuzzers found and is not mended yet: each test fails today. The generators leave these values
// out; with the mending, `fails` goes here and the value comes back there.

describe('the operations of a batch', () => {
  // Promise: they are written in their order. Today: 404, for both are decided in one set; alone, one after the other,
  // the second finds the placeholder of the first.
  test.fails.each(['patch', 'put'])('a %s finds the placeholder that an earlier one has made', async op => {
    const operations = [
      { op: 'create', body: { attribute_values: { referrer: `born for ${op}` } } },
      { op, external_id: `born for ${op}`, body: { first_name: 'Ada' } },
    ]
    const { items } = (await shop.send('POST', '/v1/people/batch', { operations })).body.data
    expect(items.map((item: { status: number }) => item.status)).toEqual([201, 200])
  })
})

describe('the operations of a batch on one entity', () => {
  // Promise: they are written in their order. Today: the last name is `First`, for the first of the two waits for the
  // name that it links to, and the second, by internal identifier, is not known to mean the same row.
  test.fails('are written in their order, by internal identifier too', async () => {
    const { id } = (await shop.send('POST', '/v1/people', {})).body.data
    const operations = [
      { op: 'create', external_id: 'linked to', body: {} },
      { op: 'patch', id, body: { last_name: 'First', attribute_values: { referrer: 'linked to' } } },
      { op: 'patch', id, body: { last_name: 'Second' } },
    ]
    await shop.send('POST', '/v1/people/batch', { operations })
    expect((await shop.send('GET', `/v1/people/internal/${id}`)).body.data.last_name).toBe('Second')
  })
})
