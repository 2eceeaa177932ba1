import { connect, type Socket } from 'node:net'
import { connect as connectByTls } from 'node:tls'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { type Organization, type Service, startService } from '../support/service.ts'
import { readDigest } from './test-tenant.ts'

type Response = { status: number; headers: string; body: string }

function connectTo(address: string): Socket {
  const { protocol, port } = new URL(address)
  const target = { host: '127.0.0.1', port: Number(port) }
  return protocol === 'https:' ? connectByTls({ ...target, rejectUnauthorized: false }) : connect(target)
}

/**
 * Sends the parts over one connection. Resolves after `count` responses, or when the connection closes, with the responses so far. With
 * `waitForEach`, each part is sent after the response to the one before.
 */
export function exchange(
  address: string,
  parts: (string | Buffer)[],
  count: number,
  waitForEach = false,
): Promise<{ responses: Response[]; closed: boolean }> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connectTo(address)
    let received = Buffer.alloc(0)
    let sent = waitForEach ? 1 : parts.length
    const finish = (closed: boolean) => {
      socket.destroy()
      resolve({ responses: responsesIn(received), closed })
    }
    socket.on('data', part => {
      received = Buffer.concat([received, part])
      const answered = responsesIn(received).length
      if (answered >= count) return finish(false)
      while (sent < parts.length && sent <= answered) socket.write(parts[sent++]!)
    })
    socket.on('close', () => finish(true))
    socket.on('error', error => ((error as { code?: string }).code === 'ECONNRESET' ? finish(true) : reject(error)))
    for (const part of parts.slice(0, sent)) socket.write(part)
  })
}

/** Returns the complete final responses. Interim responses such as 100 are skipped. */
function responsesIn(received: Buffer): Response[] {
  const responses: Response[] = []
  let remaining = received.toString('latin1')
  for (;;) {
    const headEnd = remaining.indexOf('\r\n\r\n')
    if (headEnd === -1) return responses
    const headers = remaining.slice(0, headEnd)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(headers)?.[1])
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(headers)?.[1] ?? 0)
    const body = remaining.slice(headEnd + 4, headEnd + 4 + length)
    if (body.length < length) return responses
    if (status >= 200) responses.push({ status, headers, body })
    remaining = remaining.slice(headEnd + 4 + length)
  }
}

export type Wire = {
  service: Service
  organization: Organization
  /** The digest of the organization's rows before the test. */
  digestBefore: string
  /** Sends the parts over one connection. Resolves after `count` responses, or when the connection closes. */
  send(parts: (string | Buffer)[], count: number): Promise<{ responses: Response[]; closed: boolean }>
  /** Builds the text of a request with the organization's token. */
  request(line: string, headers: string[], body?: string): string
  /** Builds a PATCH of the person `ada` with a JSON body. */
  patch(headers: string[], body?: string): string
  /** Builds the smuggled request: it deletes `ada`. */
  smuggled(): string
  /** Expects one refusal in kith's error format at most, a closed connection, and unchanged rows. */
  expectRefused(sent: string | Buffer, statuses?: number[]): Promise<void>
}

/** Starts a service with one person, `ada`, for the tests of a file, which talk to it over raw sockets. */
export function useWire(): Wire {
  let connectionCount = 0
  const wire = {
    send(parts, count) {
      connectionCount += 1
      return exchange(wire.service.address, parts, count)
    },
    request: (line, headers, body = '') =>
      `${[line, 'Host: kith', `Authorization: Bearer ${wire.organization.token}`, ...headers].join('\r\n')}\r\n\r\n${body}`,
    patch: (headers, body) =>
      wire.request('PATCH /v1/people/ada HTTP/1.1', ['Content-Type: application/json', ...headers], body),
    smuggled: () => wire.request('DELETE /v1/people/ada HTTP/1.1', ['Content-Length: 0']),
    expectRefused: (sent, statuses = [400]) => expectRefused(wire, sent, statuses),
  } as Wire
  beforeAll(async () => {
    wire.service = await startService()
    wire.organization = await wire.service.organization()
    await wire.organization.send('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada' })
  })
  beforeEach(async () => {
    wire.digestBefore = await readDigest(wire.service, wire.organization.id)
  })
  afterAll(async () => {
    console.log(`raw sockets: ${connectionCount} connections`)
    await wire.service.stop()
  })
  return wire
}

async function expectRefused(wire: Wire, sent: string | Buffer, statuses: number[]) {
  const { responses, closed } = await wire.send([sent], 2)
  expect(closed).toBe(true)
  expect(responses.length).toBeLessThanOrEqual(1)
  for (const { status, body, headers } of responses) {
    expect(statuses).toContain(status)
    expect(JSON.parse(body)).toMatchObject({ error: 'invalid_parameter', errorstack: null })
    expect(headers).toMatch(/\r\nconnection: close/i)
  }
  expect(await readDigest(wire.service, wire.organization.id)).toBe(wire.digestBefore)
}
