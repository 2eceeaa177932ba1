import { connect } from 'node:net'
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

describe('an address that is not percent-encoded UTF-8', () => {
  test('is refused with the parameter that is not', async () => {
    const reply = await shop.send('GET', '/v1/people/%FF')
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/external_id'])
  })

  test('wants a token first', async () => {
    expect((await fetch(`${service.address}/v1/people/%FF`)).status).toBe(401)
  })
})

describe('whoever bears the name of an endpoint', () => {
  test('has related entities like everybody else, when it is called internal', async () => {
    await shop.send('POST', '/v1/people', { external_id: 'internal' })
    expect((await shop.send('POST', '/v1/people/internal/related', { target: 'people' })).status).toBe(200)
  })
})

describe('the absolute form of an address (RFC 9112, 3.2.2) means the same as its path', () => {
  const absolutely = (method: string, path: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
      let answer = ''
      socket.on('data', part => {
        answer += part
      })
      socket.on('error', reject)
      socket.on('close', () => resolve(answer))
      const lines = [`${method} http://kith.example${path} HTTP/1.1`, 'Host: kith.example', 'Connection: close']
      socket.write(`${[...lines, `Authorization: Bearer ${shop.token}`].join('\r\n')}\r\n\r\n`)
    })

  test('whom a read addresses', async () => {
    await shop.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })
    await shop.send('POST', '/v1/people', { external_id: 'v1', first_name: 'Somebody else' })
    expect(await absolutely('GET', '/v1/people/ada')).toMatch(/"first_name":"Ada"/)
  })

  test('whom a deletion addresses', async () => {
    await shop.send('POST', '/v1/people', { external_id: 'bob' })
    await shop.send('POST', '/v1/people', { external_id: 'v1' })
    await absolutely('DELETE', '/v1/people/bob')
    expect((await shop.send('GET', '/v1/people/v1')).status).toBe(200)
    expect((await shop.send('GET', '/v1/people/bob')).status).toBe(404)
  })

  test('that it wants a token, there or not', async () => {
    const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
    const answer = new Promise<string>(resolve => socket.once('data', part => resolve(String(part))))
    socket.write(
      'GET http://kith.example/v1/nothing/at/all HTTP/1.1\r\nHost: kith.example\r\nConnection: close\r\n\r\n',
    )
    expect(await answer).toMatch(/^HTTP\/1.1 401 /)
  })

  test('as does the percent-encoded form', async () => {
    expect((await fetch(`${service.address}/%761/nothing/at/all`)).status).toBe(401)
    const known = await fetch(`${service.address}/%761/people/ada`)
    expect(known.status).toBe(401)
  })
})
