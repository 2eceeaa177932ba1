import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createNetServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { openSocket } from '../../../test/support/process.ts'
import { listen } from './listening.ts'

const host = '127.0.0.1'

it('serves many concurrent connections, and none after it has closed', async () => {
  const server = createServer((_, response) => response.end('here'))
  const { port, close } = await listen(server, { host, port: 0 })
  const url = `http://${host}:${port}`
  const sockets = await Promise.all(Array.from({ length: 200 }, () => openSocket(url)))
  const answers = sockets.map(
    socket => new Promise(resolve => socket.setEncoding('utf8').once('data', part => resolve(String(part)))),
  )
  for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: kith\r\n\r\n')
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 200/)
  const closed = close()
  for (const socket of sockets) socket.destroy()
  await closed
  await expect(fetch(url)).rejects.toThrow()
})

it('stops listening when it has accepted every connection that has arrived, and resets none', async () => {
  const server = createServer((_, response) => response.end('here'))
  const { port, stop, close } = await listen(server, { host, port: 0 })
  // The kernel completes these connections at once. The server accepts them in later event-loop turns.
  const answers = Array.from({ length: 300 }, () => {
    const socket = connect(port, host)
    socket.write('GET / HTTP/1.1\r\nHost: kith\r\nConnection: close\r\n\r\n')
    return text(socket)
  })
  await stop()
  await expect(openSocket(`http://${host}:${port}`)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 200/)
  await close()
})

it('rejects a port on which kith already listens, and takes it again after that has closed', async () => {
  const first = await listen(createServer(), { host, port: 0 })
  await expect(listen(createServer(), { host, port: first.port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  await first.close()
  const second = await listen(createServer(), { host, port: first.port })
  await second.close()
})

it('lets only one of two servers listen on a port, and lets another listen after both have closed', async () => {
  const free = await listen(createServer(), { host, port: 0 })
  await free.close()
  const address = { host, port: free.port }
  const both = await Promise.allSettled([listen(createServer(), address), listen(createServer(), address)])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  for (const outcome of both)
    if (outcome.status === 'fulfilled') await outcome.value.close()
    else expect(outcome.reason).toMatchObject({ code: 'EADDRINUSE' })
  await (await listen(createServer(), address)).close()
})

it('rejects a port on which another program listens', async () => {
  const other = createNetServer()
  other.listen({ host, port: 0 })
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  await expect(listen(createServer(), { host, port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  other.close()
  await once(other, 'close')
  await (await listen(createServer(), { host, port })).close()
})
