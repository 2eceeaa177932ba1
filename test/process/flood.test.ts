import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { writePair } from '../support/certificate.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, makeFolder, openSocket } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let service: Service
beforeAll(async () => {
  database = await createTestDatabase()
  service = await serve()
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

/** A running service, and its memory before any request. */
type Service = { kith: Kith; address: string; usualMib: number }

async function serve(environment: Record<string, string> = {}): Promise<Service> {
  const kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...environment })
  const address = await kith.ready
  return { kith, address, usualMib: memoryMib(kith) }
}

/** The resident memory of the service's process in MiB. The heap keeps memory for a while after it needed it. */
const memoryMib = ({ child }: Kith) =>
  Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)]).toString()) / 1024

const requestHealth = async (socket: Socket) => {
  socket.write('GET /healthz HTTP/1.1\r\nHost: kith\r\n\r\n')
  return String((await once(socket, 'data'))[0]).slice(0, 12)
}

async function openEncrypted(address: string): Promise<Socket> {
  const { hostname: host, port } = new URL(address)
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  return socket
}

/** The statuses of all responses on a connection, once the service has closed it. */
async function readStatuses(socket: Socket): Promise<number[]> {
  let received = ''
  socket.setEncoding('latin1').on('data', part => (received += part))
  // A client that still sends may get a connection reset. `events.once` would throw that error.
  await new Promise(resolve => socket.once('close', resolve))
  return [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
}

/** Opens 400 connections, and one more of a well-behaved client. */
async function openConnections({ kith, address, usualMib } = service) {
  const open = () => (address.startsWith('https') ? openEncrypted(address) : openSocket(address))
  const otherSocket = await open()
  const sockets = await Promise.all(Array.from({ length: 400 }, open))
  await Promise.all([otherSocket, ...sockets].map(requestHealth))
  onTestFinished(() => {
    for (const socket of [otherSocket, ...sockets]) socket.destroy()
  })
  return {
    sockets,
    /**
     * Sends the bytes on all 400 connections. The process is stopped meanwhile, so it reads them in one event-loop
     * turn.
     */
    send: (bytes: string) => {
      kith.child.kill('SIGSTOP')
      for (const socket of sockets) socket.write(bytes)
      kith.child.kill('SIGCONT')
    },
    expectHealthy: async () => {
      expect(await requestHealth(otherSocket)).toBe('HTTP/1.1 200')
      // 200 MiB leave room for the heap, which grows to its usual size under the first load.
      expect(memoryMib(kith)).toBeLessThan(usualMib + 200)
    },
  }
}

/**
 * The requests of one connection that kith handles: at most 63 in an event-loop turn, and at most 32 that wait at a
 * time.
 */
const [maxImmediate, maxPending] = [63, 32]

/**
 * The requests of one connection. A request that waits takes kilobytes, so without the limit the 400,000 of all connections would
 * exceed the memory that a test allows many times over.
 */
const floodLength = 1_000

async function expectLimited(request: string, status: number, max: number, flooded = service) {
  const { sockets, send, expectHealthy } = await openConnections(flooded)
  const answered = sockets.map(readStatuses)
  send(request.repeat(floodLength))
  await expectHealthy()
  for (const statuses of await Promise.all(answered)) {
    expect(statuses.filter(found => found === status).length).toBeLessThanOrEqual(max)
    expect(new Set([...statuses, status, 503])).toEqual(new Set([status, 503]))
  }
  await expectHealthy()
}

const shortRequest = 'GET /v1/ HTTP/1.1\r\n\r\n'
const jsonHead = 'Host: kith\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
const chunkedHead = 'Host: kith\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'

describe('a flood on 400 connections, each of which sends everything in one write', () => {
  it.each([
    ['of minimal length', shortRequest, 400, maxPending],
    ['to an endpoint without a token', 'GET /healthz HTTP/1.1\r\nHost: kith\r\n\r\n', 200, maxPending],
    ['in HTTP/1.0', 'GET /v1/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', 401, maxPending],
    ['with an unknown Expect header', 'GET /v1/ HTTP/1.1\r\nHost: kith\r\nExpect: more\r\n\r\n', 400, maxPending],
    ['with bodies', `POST /v1/people HTTP/1.1\r\n${jsonHead}`, 401, maxImmediate],
    ['with chunked bodies', `POST /v1/people HTTP/1.1\r\n${chunkedHead}`, 401, maxImmediate],
  ])('leaves service and memory intact: 1,000 requests %s', (_requests, ...flood) => expectLimited(...flood))

  it('leaves service and memory intact: 1,000 requests over TLS', async () => {
    const encrypted = await serve(await writePair(await makeFolder()))
    await expectLimited(shortRequest, 400, maxPending, encrypted)
  })

  it.each([
    ['/metrics', 200],
    ['/openapi.json', 200],
    ['/docs/static/swagger-ui-bundle.js', 200],
    ['/nowhere', 404],
  ])('handles less than a twentieth of 32 requests of %s on each connection', async (path, status) => {
    const { sockets, send, expectHealthy } = await openConnections()
    const answered = sockets.map(readStatuses)
    send(`GET ${path} HTTP/1.1\r\nHost: kith\r\n\r\n`.repeat(32))
    await expectHealthy()
    for (const socket of sockets) socket.end()
    const statuses = (await Promise.all(answered)).flat()
    expect(statuses).toContain(503)
    expect(new Set([...statuses, status])).toEqual(new Set([status, 503]))
    // kith handles at most 64 requests in each event-loop turn in which it reads some of them.
    expect(statuses.filter(found => found === status).length).toBeLessThan((sockets.length * 32) / 20)
    await expectHealthy()
  })

  it('leaves service and memory intact: a body of 4,000 chunks of one byte', async () => {
    const { sockets, send, expectHealthy } = await openConnections()
    const head = 'POST /oauth/token HTTP/1.1\r\nHost: kith\r\nTransfer-Encoding: chunked\r\n\r\n'
    send(`${head}${'1\r\nx\r\n'.repeat(4_000)}`)
    await expectHealthy()
    for (const socket of sockets) socket.destroy()
    await expectHealthy()
  })
})
