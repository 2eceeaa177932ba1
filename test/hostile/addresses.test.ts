import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useOwnService } from '../support/service.ts'
import { useSharedShop } from '../support/shop.ts'

const service = useOwnService()
const shop = useSharedShop(service)

describe('a path that is not percent-encoded UTF-8', () => {
  it('is refused with 400 and names the parameter', async () => {
    const reply = await shop.send('GET', '/v1/people/%FF')
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/external_id'])
  })

  it('returns 401 without a token', async () => {
    expect((await fetch(`${service.address}/v1/people/%FF`)).status).toBe(401)
  })
})

describe('an external identifier that is also the name of an endpoint', () => {
  it('serves the related entities of a person named internal', async () => {
    await shop.send('POST', '/v1/people', { external_id: 'internal' })
    expect((await shop.send('POST', '/v1/people/internal/related', { target: 'people' })).status).toBe(200)
  })
})

describe('a request target in absolute form (RFC 9112, 3.2.2)', () => {
  const sendAbsolute = (method: string, path: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
      let response = ''
      socket.on('data', part => {
        response += part
      })
      socket.on('error', reject)
      socket.on('close', () => resolve(response))
      const lines = [`${method} http://kith.example${path} HTTP/1.1`, 'Host: kith.example', 'Connection: close']
      socket.write(`${[...lines, `Authorization: Bearer ${shop.token}`].join('\r\n')}\r\n\r\n`)
    })

  it('reads the person that its path names', async () => {
    await shop.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })
    await shop.send('POST', '/v1/people', { external_id: 'v1', first_name: 'Somebody else' })
    expect(await sendAbsolute('GET', '/v1/people/ada')).toMatch(/"first_name":"Ada"/)
  })

  it('deletes the person that its path names', async () => {
    await shop.send('POST', '/v1/people', { external_id: 'bob' })
    await shop.send('POST', '/v1/people', { external_id: 'v1' })
    await sendAbsolute('DELETE', '/v1/people/bob')
    expect((await shop.send('GET', '/v1/people/v1')).status).toBe(200)
    expect((await shop.send('GET', '/v1/people/bob')).status).toBe(404)
  })

  it('returns 401 without a token, also for an unknown path', async () => {
    const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
    const response = new Promise<string>(resolve => socket.once('data', part => resolve(String(part))))
    socket.write(
      'GET http://kith.example/v1/nothing/at/all HTTP/1.1\r\nHost: kith.example\r\nConnection: close\r\n\r\n',
    )
    expect(await response).toMatch(/^HTTP\/1.1 401 /)
  })

  it('returns 401 without a token for a percent-encoded /v1', async () => {
    expect((await fetch(`${service.address}/%761/nothing/at/all`)).status).toBe(401)
    const known = await fetch(`${service.address}/%761/people/ada`)
    expect(known.status).toBe(401)
  })
})
