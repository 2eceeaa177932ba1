import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { writePair } from '../support/certificate.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, makeFolder, openSocket } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
afterEach(endProcesses)

/** Memory of the service's process that is not swapped out. What its heap has come to have it keeps for a while. */
const memoryMib = ({ child }: Kith) =>
  Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)]).toString()) / 1024

const ask = async (socket: Socket) => {
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

/** The statuses of what a connection is answered until the service closes it. */
async function statusesOf(socket: Socket): Promise<number[]> {
  let received = ''
  socket.setEncoding('latin1').on('data', part => (received += part))
  // Whoever still sends may be cut off: an error, which `once` would throw.
  await new Promise(resolve => socket.once('close', resolve))
  return [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
}

/** A service, 400 connections that it has accepted, and one more. `send` sends the same by each of them at once. */
async function besiege(environment: Record<string, string> = {}) {
  const kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...environment })
  const address = await kith.ready
  const usualMib = memoryMib(kith)
  const open = () => (address.startsWith('https') ? openEncrypted(address) : openSocket(address))
  const neighbour = await open()
  const sockets = await Promise.all(Array.from({ length: 400 }, open))
  await Promise.all([neighbour, ...sockets].map(ask))
  return {
    sockets,
    /** All of it is there before the service reads any: it reads it in one turn of its loop. */
    send: (bytes: string) => {
      kith.child.kill('SIGSTOP')
      for (const socket of sockets) socket.write(bytes)
      kith.child.kill('SIGCONT')
    },
    isAsEver: async () => {
      expect(await ask(neighbour)).toBe('HTTP/1.1 200')
      // A heap that was never asked for as much grows to its usual size, too.
      expect(memoryMib(kith)).toBeLessThan(usualMib + 200)
    },
  }
}

/** Of one connection in one turn, where each is answered at once, and where they are under way. */
const [mostAtOnce, mostUnderWay] = [63, 32]

async function expectStopped(environment: Record<string, string>, request: string, status: number, most: number) {
  const { sockets, send, isAsEver } = await besiege(environment)
  const answered = sockets.map(statusesOf)
  send(request.repeat(3_000))
  await isAsEver()
  for (const statuses of await Promise.all(answered)) {
    expect(statuses.filter(found => found === status).length).toBeLessThanOrEqual(most)
    expect(new Set([...statuses, status, 503])).toEqual(new Set([status, 503]))
  }
  await isAsEver()
}

const short = 'GET /v1/ HTTP/1.1\r\n\r\n'
const json = 'Host: kith\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
const inChunks = 'Host: kith\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'

describe('by each of 400 connections in one write leave the service as it was:', () => {
  it.each([
    ['as short as they can be', short, 400, mostUnderWay],
    ['to where no token is asked for', 'GET /healthz HTTP/1.1\r\nHost: kith\r\n\r\n', 200, mostUnderWay],
    ['of HTTP/1.0', 'GET /v1/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', 401, mostUnderWay],
    ['with an expectation', 'GET /v1/ HTTP/1.1\r\nHost: kith\r\nExpect: more\r\n\r\n', 400, mostUnderWay],
    ['with bodies', `POST /v1/people HTTP/1.1\r\n${json}`, 401, mostAtOnce],
    ['with bodies in chunks', `POST /v1/people HTTP/1.1\r\n${inChunks}`, 401, mostAtOnce],
  ])('3,000 requests %s', (_what, ...asked) => expectStopped({}, ...asked))

  it('3,000 requests by TLS', async () => {
    await expectStopped(await writePair(await makeFolder()), short, 400, mostUnderWay)
  })

  it.each([
    ['/metrics', 200],
    ['/openapi.json', 200],
    ['/docs/static/swagger-ui-bundle.js', 200],
    ['/nowhere', 404],
  ])('32 requests of %s, of which a twentieth is carried out', async (path, status) => {
    const { sockets, send, isAsEver } = await besiege()
    const answered = sockets.map(statusesOf)
    send(`GET ${path} HTTP/1.1\r\nHost: kith\r\n\r\n`.repeat(32))
    await isAsEver()
    for (const socket of sockets) socket.end()
    const statuses = (await Promise.all(answered)).flat()
    expect(statuses).toContain(503)
    expect(new Set([...statuses, status])).toEqual(new Set([status, 503]))
    // Of each turn of the event loop in which some of it is read, 64.
    expect(statuses.filter(found => found === status).length).toBeLessThan((sockets.length * 32) / 20)
    await isAsEver()
  })

  it('4,000 chunks of a byte', async () => {
    const { sockets, send, isAsEver } = await besiege()
    const head = 'POST /oauth/token HTTP/1.1\r\nHost: kith\r\nTransfer-Encoding: chunked\r\n\r\n'
    send(`${head}${'1\r\nx\r\n'.repeat(4_000)}`)
    await isAsEver()
    for (const socket of sockets) socket.destroy()
    await isAsEver()
  })
})
