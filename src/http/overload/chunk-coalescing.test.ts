import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { coalesceChunks } from './chunk-coalescing.ts'

const received: Buffer[][] = []
const server = createServer((request, response) => {
  coalesceChunks(request)
  const pieces: Buffer[] = []
  received.push(pieces)
  request.on('data', piece => pieces.push(piece))
  request.once('end', () => response.end())
})
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'))
afterAll(() => server.close())

/**
 * Sends bodies in the given chunks on one connection in one write. Returns the pieces of each body that the server
 * received.
 */
async function send(bodies: Buffer[][]): Promise<Buffer[][]> {
  received.length = 0
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const requests = bodies.map((chunks, index) => {
    const last = index === bodies.length - 1 ? 'Connection: close\r\n' : ''
    const head = `POST / HTTP/1.1\r\nHost: kith\r\n${last}Transfer-Encoding: chunked\r\n\r\n`
    const parts = chunks.map(chunk => `${chunk.length.toString(16)}\r\n${chunk.toString('latin1')}\r\n`)
    return `${head}${parts.join('')}0\r\n\r\n`
  })
  socket.write(requests.join(''), 'latin1')
  await text(socket)
  return received
}

it('delivers the same body for any chunks, also with another request behind it', async () => {
  const small = fc.array(fc.uint8Array({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 700 })
  const any = fc.array(fc.uint8Array({ minLength: 1, maxLength: 3_000 }), { maxLength: 40 })
  const body = fc.oneof(small, any).map(chunks => chunks.map(chunk => Buffer.from(chunk)))
  await fc.assert(
    fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 3 }), async bodies => {
      const sent = bodies.map(chunks => Buffer.concat(chunks).toString('hex'))
      expect((await send(bodies)).map(pieces => Buffer.concat(pieces).toString('hex'))).toEqual(sent)
    }),
  )
})

it('delivers thousands of one-byte chunks as a few pieces, without delay', async () => {
  const [pieces = []] = await send([Array.from({ length: 10_000 }, () => Buffer.from('x'))])
  expect(Buffer.concat(pieces).toString()).toBe('x'.repeat(10_000))
  expect(pieces.length).toBeLessThan(200)
})

it('delivers a lone chunk without waiting for the next one', async () => {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const arrived = once(server, 'request')
  socket.write('POST / HTTP/1.1\r\nHost: kith\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n')
  const [request] = await arrived
  for (let sent = 0; sent < 100; sent += 1) {
    const delivered = once(request, 'data')
    socket.write('1\r\nx\r\n')
    expect(String((await delivered)[0])).toBe('x')
  }
  socket.write('0\r\n\r\n')
  expect(String(await buffer(socket))).toMatch(/^HTTP\/1\.1 200/)
})

it('buffers no more of an unread body than Node does by itself', async () => {
  const arrived = Promise.withResolvers<IncomingMessage>()
  const pausing = createServer(request => {
    coalesceChunks(request)
    arrived.resolve(request)
  })
  await once(pausing.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((pausing.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: kith\r\nTransfer-Encoding: chunked\r\n\r\n')
  const request = await arrived.promise
  const chunk = `3e8\r\n${'x'.repeat(1_000)}\r\n`.repeat(30)
  for (let sent = 0; sent < 1_000 && socket.writableLength === 0; sent += 1) {
    socket.write(chunk)
    await setImmediate()
    await setImmediate()
  }
  expect(socket.writableLength).toBeGreaterThan(0)
  // A pause takes effect with the next read of 64 kB.
  expect(request.readableLength).toBeLessThan(request.readableHighWaterMark + 2 * 65_536)
  const rest = buffer(request)
  socket.end('0\r\n\r\n')
  expect((await rest).length % 30_000).toBe(0)
  socket.destroy()
  pausing.close()
})
