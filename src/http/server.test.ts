import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../config.ts'
import { createServer } from './server.ts'

/** The address that the service takes for its client's, and the scheme and host it takes for its own. */
async function seen(proxies: number, headers: Record<string, string>) {
  const config = loadConfig({ KITH_BEHIND_PROXY: String(proxies) })
  const server = createServer(config, pino({ level: 'silent' }))
  server.get('/', async ({ ip, protocol, host }) => ({ ip, protocol, host }))
  const { body } = await server.inject({ url: '/', remoteAddress: '192.0.2.9', headers: { host: 'kith', ...headers } })
  await server.close()
  return JSON.parse(body)
}

describe('X-Forwarded-For', () => {
  const forwarded = { 'X-Forwarded-For': '198.51.100.66, 203.0.113.1, 203.0.113.2' }

  it.each([
    [0, '192.0.2.9'],
    [1, '203.0.113.2'],
    [2, '203.0.113.1'],
  ])('behind %i proxies is read no further than they have written it', async (proxies, ip) => {
    expect((await seen(proxies, forwarded)).ip).toBe(ip)
  })

  it('and its like change nothing where there is no proxy', async () => {
    const headers = { ...forwarded, 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'evil.example' }
    expect(await seen(0, { ...headers, Forwarded: 'for=198.51.100.66' })).toEqual(await seen(0, {}))
  })
})
