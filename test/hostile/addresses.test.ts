import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { lockPerson } from '../support/process.ts'
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

describe('requests behind each other on one connection', () => {
  // RFC 9112, 9.3.2: they may be worked on at once where all are safe.
  test('take effect one after the other, where one of them writes', async () => {
    const { key, send, token } = await service.organization()
    await send('POST', '/v1/people', { external_id: `of ${key}` })
    const [{ url }] = (await service.sql<{ url: string }>('select current_database() as url')) as [{ url: string }]
    const lock = await lockPerson(urlOfDatabase(inject('postgres_admin_url'), url), `of ${key}`)
    const { db } = service
    const { query } = db
    const read = new Promise<void>(resolve => {
      db.query = (asked, values, signal) => {
        const reading = query(asked, values, signal)
        if (asked.name === 'read_by_external_id') void reading.then(() => resolve())
        return reading as never
      }
    })
    const body = '{"last_name":"Written"}'
    const head = [`Host: kith`, `Authorization: Bearer ${token}`].join('\r\n')
    const path = `/v1/people/of%20${key}`
    const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
    const answers = new Promise<string>(resolve => {
      let text = ''
      socket.on('data', part => {
        text += part
        if (/"external_id"/.test(text)) resolve(text)
      })
    })
    socket.write(
      `PATCH ${path} HTTP/1.1\r\n${head}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
        `GET ${path} HTTP/1.1\r\n${head}\r\n\r\n`,
    )
    while ((await lock.waiting()) === 0);
    // A read that waits its turn does not come before the lock goes: it is looked for some hundred times.
    const looked = (async () => {
      for (let times = 0; times < 300; times += 1) await lock.waiting()
    })()
    await Promise.race([read, looked])
    await lock.release()
    const text = await answers
    Object.assign(db, { query })
    socket.destroy()
    expect(text).toContain('"last_name":"Written"')
  })
})
