import { connect, type Socket } from 'node:net'
import { connect as connectByTls } from 'node:tls'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { type Organization, type Service, startService } from '../support/service.ts'
import { digestOf } from './test-tenant.ts'

type Response = { status: number; headers: string; body: string }

function connectTo(address: string): Socket {
  const { protocol, port } = new URL(address)
  const to = { host: '127.0.0.1', port: Number(port) }
  return protocol === 'https:' ? connectByTls({ ...to, rejectUnauthorized: false }) : connect(to)
}

/**
 * Sends the parts and returns all that came until the connection was closed, or had answered `count`. With `inTurn` each part waits
 * for an answer to the one before it.
 */
export function exchange(
  address: string,
  parts: (string | Buffer)[],
  count: number,
  inTurn = false,
): Promise<{ responses: Response[]; closed: boolean }> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connectTo(address)
    let received = Buffer.alloc(0)
    let sent = inTurn ? 1 : parts.length
    const end = (closed: boolean) => {
      socket.destroy()
      resolve({ responses: responsesIn(received), closed })
    }
    socket.on('data', part => {
      received = Buffer.concat([received, part])
      const answered = responsesIn(received).length
      if (answered >= count) return end(false)
      while (sent < parts.length && sent <= answered) socket.write(parts[sent++]!)
    })
    socket.on('close', () => end(true))
    socket.on('error', error => ((error as { code?: string }).code === 'ECONNRESET' ? end(true) : reject(error)))
    for (const part of parts.slice(0, sent)) socket.write(part)
  })
}

/** Whole responses; a 100 is none. */
function responsesIn(received: Buffer): Response[] {
  const found: Response[] = []
  let rest = received.toString('latin1')
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) return found
    const headers = rest.slice(0, headEnd)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(headers)?.[1])
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(headers)?.[1] ?? 0)
    const body = rest.slice(headEnd + 4, headEnd + 4 + length)
    if (body.length < length) return found
    if (status >= 200) found.push({ status, headers, body })
    rest = rest.slice(headEnd + 4 + length)
  }
}

export type Wire = {
  service: Service
  organization: Organization
  /** As it stood before the test. */
  before: string
  /** Sends the parts and answers all that came until the connection was closed, or had answered `count`. */
  send(parts: (string | Buffer)[], count: number): Promise<{ responses: Response[]; closed: boolean }>
  /** A request of the organization, byte for byte. */
  request(line: string, headers: string[], body?: string): string
  /** A PATCH of the person `ada` with a JSON body. */
  patch(headers: string[], body?: string): string
  /** What a smuggler would have carried out: it deletes `ada`. */
  smuggled(): string
  /** Holds that it is refused with our envelope or cut off, and that nothing which stood behind it was carried out. */
  refusedWhole(sent: string | Buffer, statuses?: number[]): Promise<void>
}

/** A service with one person, `ada`, for the tests of a file to talk to in bytes. */
export function useWire(): Wire {
  let sendings = 0
  const wire = {
    send(parts, count) {
      sendings += 1
      return exchange(wire.service.address, parts, count)
    },
    request: (line, headers, body = '') =>
      `${[line, 'Host: kith', `Authorization: Bearer ${wire.organization.token}`, ...headers].join('\r\n')}\r\n\r\n${body}`,
    patch: (headers, body) =>
      wire.request('PATCH /v1/people/ada HTTP/1.1', ['Content-Type: application/json', ...headers], body),
    smuggled: () => wire.request('DELETE /v1/people/ada HTTP/1.1', ['Content-Length: 0']),
    refusedWhole: (sent, statuses = [400]) => holdRefused(wire, sent, statuses),
  } as Wire
  beforeAll(async () => {
    wire.service = await startService()
    wire.organization = await wire.service.organization()
    await wire.organization.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })
  })
  beforeEach(async () => {
    wire.before = await digestOf(wire.service, wire.organization.id)
  })
  afterAll(async () => {
    console.log(`raw sockets: ${sendings} connections`)
    await wire.service.stop()
  })
  return wire
}

async function holdRefused(wire: Wire, sent: string | Buffer, statuses: number[]) {
  const { responses, closed } = await wire.send([sent], 2)
  expect(closed).toBe(true)
  expect(responses.length).toBeLessThanOrEqual(1)
  for (const { status, body, headers } of responses) {
    expect(statuses).toContain(status)
    expect(JSON.parse(body)).toMatchObject({ error: 'invalid_parameter', errorstack: null })
    expect(headers).toMatch(/\r\nconnection: close/i)
  }
  expect(await digestOf(wire.service, wire.organization.id)).toBe(wire.before)
}
