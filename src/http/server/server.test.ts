import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectByTls } from 'node:tls'
import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { writePair } from '../../../test/support/certificate.ts'
import { loadConfig } from '../../process/config.ts'
import { clientAddress } from '../input/request-head.ts'
import { createDrain } from './drain.ts'
import { createServer, type Serve } from './server.ts'

/** A server that passes every request to `serve`. */
const createTestServer = (serve: Serve, settings: NodeJS.ProcessEnv = {}) =>
  createServer(
    { config: loadConfig(settings), logger: pino({ level: 'silent' }), drain: createDrain() },
    { inFlight: () => 0, stop: () => {} },
    serve,
  )

/** The client address that the service determines. */
async function readClientAddress(proxies: number, headers: Record<string, string>): Promise<string> {
  const app = createTestServer((_, request, response) => response.end(clientAddress(request, proxies)))
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  const answer = await (await fetch(address, { headers })).text()
  await app.close()
  return answer
}

describe('X-Forwarded-For', () => {
  const forwarded = { 'X-Forwarded-For': '198.51.100.66, 203.0.113.1, 203.0.113.2' }

  it.each([
    [0, '127.0.0.1'],
    [1, '203.0.113.2'],
    [2, '203.0.113.1'],
    [9, '198.51.100.66'],
  ])('behind %i proxies is trusted only as far as the proxies have written it', async (proxies, address) => {
    expect(await readClientAddress(proxies, forwarded)).toBe(address)
  })

  it('falls back to the address of the connection if it is missing or empty', async () => {
    for (const headers of [{}, { 'X-Forwarded-For': '' }, { Forwarded: 'for=198.51.100.66' }])
      expect(await readClientAddress(1, headers as Record<string, string>)).toBe('127.0.0.1')
  })
})

describe('a connection whose client sends nothing more', () => {
  /** Sends the requests, ends the sending side, and returns the socket. */
  async function sendAll(address: string, paths: string[]): Promise<Socket> {
    const { port, protocol } = new URL(address)
    const target = { port: Number(port), host: '127.0.0.1', allowHalfOpen: true }
    const isTls = protocol === 'https:'
    const socket = isTls ? connectByTls({ ...target, rejectUnauthorized: false }) : connect(target)
    await once(socket, isTls ? 'secureConnect' : 'connect')
    socket.end(paths.map(path => `GET ${path} HTTP/1.1\r\nHost: kith\r\n\r\n`).join(''))
    return socket
  }

  it.each(['http', 'https'])('gets every response, in order, and is closed then (%s)', async protocol => {
    const folder = await mkdtemp(join(tmpdir(), 'kith-'))
    const app = createTestServer(
      async ({ socket }, { url }, response) => {
        if (!socket.readableEnded) await once(socket, 'end')
        response.end(url)
      },
      protocol === 'https' ? await writePair(folder) : {},
    )
    const socket = await sendAll(await app.listen({ host: '127.0.0.1', port: 0 }), ['/1', '/2', '/3'])
    expect((await text(socket)).match(/^\/\d/gm)).toEqual(['/1', '/2', '/3'])
    await app.close()
    await rm(folder, { recursive: true })
  })

  it('is closed if no response comes for some seconds, so that a client that is gone costs no more', async () => {
    const closed = Promise.withResolvers<void>()
    const app = createTestServer(({ socket }) => socket.once('close', () => closed.resolve()))
    const socket = await sendAll(await app.listen({ host: '127.0.0.1', port: 0 }), ['/'])
    await closed.promise
    expect(await text(socket)).toBe('')
    await app.close()
  })
})

describe('a drain', () => {
  /** Sends one request on a separate connection. Returns the status, or the error code of the connection. */
  const ask = (port: number) =>
    new Promise<string>(resolve => {
      const socket = connect(port, '127.0.0.1')
      let answer = ''
      let code: string | undefined
      socket.setEncoding('latin1').on('data', part => (answer += part))
      socket.on('error', (error: NodeJS.ErrnoException) => {
        code = error.code
      })
      socket.on('close', () => resolve(code ?? answer.slice(9, 12)))
      socket.write('GET / HTTP/1.1\r\nHost: kith\r\n\r\n')
    })

  it('answers every connection of clients that connect again and again, until it refuses them', async () => {
    for (let round = 0; round < 10; round += 1) {
      const app = createTestServer((_connection, _request, response) =>
        response.writeHead(503, { Connection: 'close' }).end(),
      )
      const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
      const outcomes = new Set<string>()
      const client = async () => {
        let outcome: string
        do {
          outcome = await ask(port)
          outcomes.add(outcome)
        } while (outcome === '503')
      }
      const drained = app.drain({ servingMs: 50, patienceMs: 20_000 })
      const clients = Array.from({ length: 24 }, client)
      await drained
      await Promise.all(clients)
      await app.close()
      expect(outcomes).toEqual(new Set(['503', 'ECONNREFUSED']))
    }
  })
})
