import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../config.ts'
import { createDrain } from './drain.ts'
import { clientAddress, createServer } from './server.ts'

/** The client address that the service determines. */
async function readClientAddress(proxies: number, headers: Record<string, string>): Promise<string> {
  const app = createServer(
    { config: loadConfig({}), logger: pino({ level: 'silent' }), drain: createDrain() },
    { admit: () => ({ leave: () => {} }), inFlight: () => 0, stop: () => {} },
    exchange => exchange.send(200, clientAddress(exchange.request, proxies)),
  )
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
