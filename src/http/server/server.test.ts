import { connect } from 'node:net'
import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../config.ts'
import { createDrain } from './drain.ts'
import { clientAddress, createServer, type Serve } from './server.ts'

/** A server that passes every request to `serve`. */
const createTestServer = (serve: Serve) =>
  createServer(
    { config: loadConfig({}), logger: pino({ level: 'silent' }), drain: createDrain() },
    { admit: () => ({ leave: () => {} }), inFlight: () => 0, stop: () => {} },
    serve,
  )

/** The client address that the service determines. */
async function readClientAddress(proxies: number, headers: Record<string, string>): Promise<string> {
  const app = createTestServer(exchange => exchange.send(200, clientAddress(exchange.request, proxies)))
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

describe('a drain', () => {
  /** Sends one request on a connection of its own. Returns the status, or the error code of the connection. */
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
      const app = createTestServer(exchange => exchange.send(503, 'draining'))
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
