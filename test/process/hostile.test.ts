import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, openSocket, senderTo, tokenFrom } from '../support/process.ts'
import type { Send } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let kith: Kith
let address: string
let token: string
let send: Send
let usualMib: number

/** Memory of the service's process that is not swapped out. */
const memoryMib = () => Number(execFileSync('ps', ['-o', 'rss=', '-p', String(kith.child.pid)]).toString()) / 1024

beforeAll(async () => {
  database = await createTestDatabase()
  kith = launch({ DATABASE_URL: database.url, KITH_LIMIT_REQUEST_MS: '2000' })
  address = await kith.ready
  token = await tokenFrom({ DATABASE_URL: database.url })
  send = senderTo(address, token)
  await send('POST', '/v1/people', { external_id: 'ada' })
  // The heap finds its usual size.
  for (let count = 0; count < 500; count++) await send('GET', '/v1/people/ada')
  usualMib = memoryMib()
})

afterAll(async () => {
  await endProcesses()
  await database.drop()
})

type Attack = {
  head: string
  /** What follows the head again and again, until the service closes. */
  part?: string
  /** The pause between two parts; without it they come as fast as they are taken. */
  pauseMs?: number
}

/** Resolves when the service has closed: the bytes that went out, and the statuses of the answers that came. */
async function attack({ head, part, pauseMs }: Attack): Promise<{ sentMib: number; statuses: number[] }> {
  const socket = await openSocket(address)
  let received = ''
  socket.setEncoding('latin1').on('data', data => (received += data))
  let closed = false
  const end = new Promise<void>(resolve => {
    socket.once('close', () => {
      closed = true
      resolve()
    })
  })
  const ready = () =>
    Promise.race([
      end,
      new Promise(resolve => (pauseMs ? setTimeout(resolve, pauseMs) : socket.once('drain', resolve))),
    ])
  if (!socket.write(head)) await Promise.race([end, new Promise(resolve => socket.once('drain', resolve))])
  while (part !== undefined && !closed) if (!socket.write(part) || pauseMs) await ready()
  await end
  const statuses = [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
  return { sentMib: socket.bytesWritten / 1_048_576, statuses }
}

/** What an attack comes to, while a neighbour asks for its own again and again. */
async function besideNeighbour<T>(work: () => Promise<T>): Promise<{ outcome: T; refused: number[]; peakMib: number }> {
  const refused: number[] = []
  let [running, peakMib] = [true, 0]
  const neighbour = async () => {
    do {
      const { status } = await send('GET', '/v1/people/ada')
      if (status !== 200) refused.push(status)
      peakMib = Math.max(peakMib, memoryMib())
    } while (running)
  }
  const asking = neighbour()
  const outcome = await work().finally(() => {
    running = false
  })
  await asking
  return { outcome, refused, peakMib }
}

const authorization = () => `Authorization: Bearer ${token}\r\n`
const json = 'Content-Type: application/json\r\n'
const chunked = 'Transfer-Encoding: chunked\r\n'
const post = (headers: string) => `POST /v1/people HTTP/1.1\r\nHost: kith\r\n${headers}\r\n`
const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
const many = 'X-Field: value\r\n'.repeat(1_000)

// Without any guard the same attacks took 420 MiB more than usual.
const mostMib = 150

describe('a client that is slow', () => {
  it('is closed when its time is over, whatever it is slow with, and a neighbour is served', async () => {
    const slow = [
      { head: '' },
      { head: 'GET /healthz HTTP/1.1\r\nX-Slow: ', part: 'a', pauseMs: 50 },
      { head: post(`${authorization()}${json}Content-Length: 1000\r\n`), part: 'a', pauseMs: 50 },
      { head: post(`${authorization()}${json}${chunked}`), part: '1\r\na\r\n', pauseMs: 50 },
      // These are answered at once, and go on.
      { head: post(chunked), part: '1\r\na\r\n', pauseMs: 50 },
      { head: `GET /healthz HTTP/1.1\r\nHost: kith\r\n${chunked}\r\n`, part: '1\r\na\r\n', pauseMs: 50 },
    ]
    const { outcome, refused } = await besideNeighbour(() => Promise.all(slow.map(attack)))
    expect(outcome.map(({ statuses }) => statuses)).toEqual([[504], [504], [504], [504], [401], [200]])
    expect(refused).toEqual([])
  })

  it('is closed when it reads nothing of what it asked for', async () => {
    const socket = await openSocket(address)
    socket.pause()
    socket.write('GET /openapi.json HTTP/1.1\r\nHost: kith\r\n\r\n'.repeat(1_000))
    await expect.poll(() => kith.said.stdout, { timeout: 20_000 }).toMatch(/"route":"\/openapi.json","aborted":true/)
    socket.destroy()
  })
})

describe('a client that sends without end', () => {
  it.each([
    ['headers', () => ({ head: 'GET /healthz HTTP/1.1\r\n', part: many }), 431],
    ['an address', () => ({ head: 'GET /', part: 'x'.repeat(10_000) }), 431],
    ['extensions of a chunk', () => ({ head: `${post(`${authorization()}${json}${chunked}`)}1;`, part: many }), 400],
    ['trailers', () => ({ head: `${post(`${authorization()}${json}${chunked}`)}0\r\n`, part: many }), 431],
    ['a body in chunks', () => ({ head: post(`${authorization()}${json}${chunked}`), part: chunk }), 413],
    [
      'a body that it announced',
      () => ({ head: post(`${authorization()}${json}Content-Length: 1073741824\r\n`), part: chunk }),
      413,
    ],
    ['a body without a token', () => ({ head: post(chunked), part: chunk }), 401],
    [
      'a compressed body',
      () => ({ head: post(`${authorization()}${json}Content-Encoding: gzip\r\n${chunked}`), part: chunk }),
      415,
    ],
    [
      'a compressed transfer',
      () => ({ head: post(`${authorization()}${json}Transfer-Encoding: gzip, chunked\r\n`), part: chunk }),
      415,
    ],
    [
      'a body where none is read',
      () => ({ head: `GET /healthz HTTP/1.1\r\nHost: kith\r\n${chunked}\r\n`, part: chunk }),
      200,
    ],
  ])('%s is closed after a few MiB, memory stays flat, and a neighbour is served', async (_what, make, status) => {
    const { outcome, refused, peakMib } = await besideNeighbour(() => attack(make()))
    // Whoever still sends may find the connection reset before the answer is read.
    expect([[status], []]).toContainEqual(outcome.statuses)
    expect(outcome.sentMib).toBeLessThan(128)
    expect(peakMib).toBeLessThan(usualMib + mostMib)
    expect(refused).toEqual([])
  })
})

describe('10,000 requests at once on one connection', () => {
  it.each([
    ['reads', () => `GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\n${authorization()}\r\n`, 200],
    ['writes', () => `${post(`${authorization()}${json}Content-Length: 2\r\n`)}{}`, 201],
    ['requests without a token', () => post(''), 401],
  ])('of %s: some are answered, one is refused, and the connection ends', async (_what, make, status) => {
    const { outcome, refused, peakMib } = await besideNeighbour(() => attack({ head: make().repeat(10_000) }))
    const answered = outcome.statuses.filter(found => found === status)
    expect(outcome.statuses.length).toBeLessThan(10_000)
    expect([...new Set(outcome.statuses)].filter(found => ![status, 503].includes(found))).toEqual([])
    expect(outcome.statuses.filter(found => found === 503).length).toBeLessThanOrEqual(1)
    expect(answered.length).toBeLessThan(10_000)
    expect(peakMib).toBeLessThan(usualMib + mostMib)
    expect(refused).toEqual([])
  })

  it('thirty of them are all answered, in order', async () => {
    const people = Array.from({ length: 30 }, (_, index) => `/v1/people/p${index}`)
    const requests = people.map(
      path => `GET ${path} HTTP/1.1\r\nHost: kith\r\nX-Request-Id: ${path.slice(11)}\r\n${authorization()}`,
    )
    const socket = await openSocket(address)
    let received = ''
    socket.setEncoding('latin1').on('data', data => (received += data))
    socket.write(`${requests.join('\r\n')}Connection: close\r\n\r\n`)
    await new Promise(resolve => socket.once('close', resolve))
    expect([...received.matchAll(/"request_id":"(\w+)"/g)].map(([, id]) => `/v1/people/${id}`)).toEqual(people)
  })
})
