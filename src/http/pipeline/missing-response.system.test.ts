import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Organization, useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useOwnService({ KITH_LIMIT_ANSWER_BYTES: `${2 ** 20}`, KITH_LIMIT_REQUEST_MS: '4000' })
let stopReading: () => unknown
const organization = useSharedShop(service)
beforeAll(async () => {
  for (const external_id of ['ada', 'bob'])
    await organization.send('POST', '/v1/people', { external_id, ...largeValues })
  const reader = await service.organization()
  for (let number = 0; number < 40; number += 1) await reader.send('POST', '/v1/people', largeValues)
  const readers = [readSlowly(reader), readSlowly(reader)]
  stopReading = () => readers.map(stop => stop())
  await vi.waitUntil(async () => isMissing((await organization.send('GET', '/v1/people/ada')).status), {
    timeout: 50_000,
  })
})
afterAll(async () => {
  stopReading()
})

const largeValues = { attribute_values: { notes: Array(8).fill('x'.repeat(60_000)) } }

/**
 * Reads pages of 20 MB, one after the other, so slowly that they use up the memory for large responses. Returns a
 * function that ends it.
 */
function readSlowly(organization: Organization): () => void {
  const { token } = organization
  const { hostname, port } = new URL(service.address)
  const socket = connect(Number(port), hostname)
  const body = JSON.stringify({ cursor_configuration: { size: 40 } })
  socket.write(
    `POST /v1/people/list HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  socket.on('data', () => {
    socket.pause()
    void setTimeout(50).then(() => socket.resume())
  })
  let isWanted = true
  let next = () => {}
  socket.once('close', () => {
    if (isWanted) next = readSlowly(organization)
  })
  return () => {
    isWanted = false
    socket.destroy()
    next()
  }
}

/** Whether this status of a read shows that there was no memory for its response. */
const isMissing = (status: number) => status === 503 || status === 504

const ways: [way: string, headers: (round: number) => Record<string, string>][] = [
  ['', () => ({})],
  [' under an Idempotency-Key', round => ({ 'Idempotency-Key': `key-${round}` })],
]

describe('a write whose response finds no memory', () => {
  it.each(ways)('tells by its outcome whether it was done%s', async (_, headersOf) => {
    const statuses: number[] = []
    // Between two pages of a reader, memory is free for a moment, and on a busy machine for longer.
    for (let round = 0; round < 2 || !statuses.some(isMissing); round += 1) {
      const first_name = `Ada ${headersOf(round)['Idempotency-Key']} ${round}`
      const headers = { Prefer: 'return=representation', ...headersOf(round) }
      const reply = await organization.send('PATCH', '/v1/people/ada', { first_name }, headers)
      const { outcome } = reply.body as { outcome?: string }
      statuses.push(reply.status)
      const [ada] = await service.sql<{ first_name: string }>(
        `select first_name from entities where organization_id = $1 and external_id = 'ada'`,
        [organization.id],
      )
      expect([reply.status, outcome, ada!.first_name === first_name]).toEqual([
        reply.status,
        outcome,
        reply.status === 200 || outcome === 'done',
      ])
      if (outcome === 'done') expect(reply.headers.get('Retry-After')).toBe(null)
    }
  })
})
