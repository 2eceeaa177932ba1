import { describe, expect, it } from 'vitest'
import { useOwnService } from '../support/service.ts'
import { useSharedShop } from '../support/shop.ts'
import { createSender } from './sender.ts'

const service = useOwnService()
const shop = useSharedShop(service, 'referrer')

describe('keys that JavaScript objects inherit', () => {
  it.each(['valueOf', 'toString'])('rewrites a value with the key %s', async key => {
    const body = { attribute_values: { a: { [key]: 1 } } }
    await shop.send('POST', '/v1/people', { external_id: key, ...body })
    expect((await shop.send('PATCH', `/v1/people/${key}`, body)).status).toBe(200)
  })

  it('does not increment the version when a value with the key constructor is written again', async () => {
    const body = { attribute_values: { a: { constructor: { b: 1 } } } }
    await shop.send('POST', '/v1/people', { external_id: 'constructor', ...body })
    await shop.send('PATCH', '/v1/people/constructor', body)
    expect((await shop.send('GET', '/v1/people/constructor')).body.data.version).toBe(1)
  })

  it('accepts a repeated event whose value has the key constructor', async () => {
    await shop.send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
    const body = { external_id: 'v', attribute_values: { a: { constructor: { b: 1 } } } }
    await shop.send('POST', '/v1/stacks/visits', body)
    expect((await shop.send('POST', '/v1/stacks/visits', body)).status).toBe(200)
  })
})

describe('a key with an escape sequence', () => {
  // V8 13.6 of Node 24 (nodejs/node#63785): after JSON.parse has read a key that is one backslash behind another key,
  // it mistakes a key that begins with an escape for that key.
  it('is stored as sent after another body had a key that is one backslash', async () => {
    await shop.send('POST', '/v1/people', { attribute_values: { a: { h: 1, '\\': 2 } } })
    const sender = createSender(service)
    const body = '{"external_id":"quoted","attribute_values":{"a":{"h":1,"\\"":2}}}'
    await sender.send(shop.token, { method: 'POST', path: '/v1/people', body })
    sender.close()
    const text = 'select attributes::text as stored from entities where organization_id = $1 and external_id = $2'
    expect(await service.sql(text, [shop.id, 'quoted'])).toEqual([{ stored: '{"a": {"\\"": 2, "h": 1}}' }])
  })
})

describe('trimming of Unicode White_Space, which excludes U+FEFF', () => {
  it('keeps the U+FEFF at the start of a value, and refuses it by name in a linked name', async () => {
    const made = await shop.send('POST', '/v1/people', { attribute_values: { note: '\uFEFFeve' } })
    expect(made.body.data.attribute_values).toEqual({ note: '\uFEFFeve' })
    const linked = await shop.send('POST', '/v1/people', { attribute_values: { referrer: '\uFEFFeve' } })
    expect([linked.status, linked.body.details?.[0]?.message]).toEqual([400, expect.stringContaining('U+FEFF')])
  })
})
