import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'
import { makeShop, type Shop } from '../support/writes.ts'
import { createSender } from './sender.ts'

let service: Service
let shop: Shop
beforeAll(async () => {
  service = await startService()
  shop = await makeShop(service)
})
afterAll(() => service.stop())

describe('keys that objects inherit are plain data', () => {
  test.each(['valueOf', 'toString'])('a value with the key %s can be written again', async key => {
    const body = { attribute_values: { a: { [key]: 1 } } }
    await shop.send('POST', '/v1/people', { external_id: key, ...body })
    expect((await shop.send('PATCH', `/v1/people/${key}`, body)).status).toBe(200)
  })

  test('a value with the key constructor is equal to itself: the same write again changes nothing', async () => {
    const body = { attribute_values: { a: { constructor: { b: 1 } } } }
    await shop.send('POST', '/v1/people', { external_id: 'constructor', ...body })
    await shop.send('PATCH', '/v1/people/constructor', body)
    expect((await shop.send('GET', '/v1/people/constructor')).body.data.version).toBe(1)
  })

  test('an event whose value has the key constructor can be sent again', async () => {
    await shop.send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    const body = { external_id: 'v', attribute_values: { a: { constructor: { b: 1 } } } }
    await shop.send('POST', '/v1/stacks/visits', body)
    expect((await shop.send('POST', '/v1/stacks/visits', body)).status).toBe(200)
  })
})

describe('a key stays the key it was sent as', () => {
  // V8 13.6 of Node 24 (nodejs/node#63785): once a key that is one backslash was parsed behind another key, JSON.parse
  // takes a key that begins with an escape for it.
  test('also when another body had a key that is one backslash', async () => {
    await shop.send('POST', '/v1/people', { attribute_values: { a: { h: 1, '\\': 2 } } })
    const sender = createSender(service)
    const body = '{"external_id":"quoted","attribute_values":{"a":{"h":1,"\\"":2}}}'
    await sender.ask(shop.token, { method: 'POST', path: '/v1/people', body })
    sender.close()
    const text = 'select attributes::text as stored from entities where organization_id = $1 and external_id = $2'
    expect(await service.sql(text, [shop.id, 'quoted'])).toEqual([{ stored: '{"a": {"\\"": 2, "h": 1}}' }])
  })
})

describe('trimming takes Unicode White_Space, which U+FEFF is not', () => {
  test('a link to a name that begins with U+FEFF goes to that name', async () => {
    const made = await shop.send('POST', '/v1/people', { attribute_values: { referrer: '\uFEFFeve' } })
    expect(made.body.data.attribute_values).toEqual({ referrer: '\uFEFFeve' })
  })
})
