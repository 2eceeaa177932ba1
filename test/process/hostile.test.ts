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

/** The resident memory of the service's process in MiB. */
const memoryMib = () => Number(execFileSync('ps', ['-o', 'rss=', '-p', String(kith.child.pid)]).toString()) / 1024

beforeAll(async () => {
  database = await createTestDatabase()
  kith = launch({ DATABASE_URL: database.url, KITH_LIMIT_REQUEST_MS: '2000' })
  address = await kith.ready
  token = await tokenFrom({ DATABASE_URL: database.url })
  send = senderTo(address, token)
  await send('POST', '/v1/people', { external_id: 'ada' })
  // These requests bring the heap to its usual size.
  for (let count = 0; count < 500; count++) await send('GET', '/v1/people/ada')
  usualMib = memoryMib()
})

afterAll(async () => {
  await endProcesses()
  await database.drop()
})

type Attack = {
  head: string
  /** Bytes that the client repeats after the head until the service closes the connection. */
  part?: string
  /** The pause between two parts. Without it, the client sends as fast as the service reads. */
  pauseMs?: number
}

/** Runs an attack until the service closes the connection. Returns the MiB sent and the statuses received. */
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
  const waitToSend = () =>
    Promise.race([
      end,
      new Promise(resolve => (pauseMs ? setTimeout(resolve, pauseMs) : socket.once('drain', resolve))),
    ])
  if (!socket.write(head)) await Promise.race([end, new Promise(resolve => socket.once('drain', resolve))])
  while (part !== undefined && !closed) if (!socket.write(part) || pauseMs) await waitToSend()
  await end
  const statuses = [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
  return { sentMib: socket.bytesWritten / 1_048_576, statuses }
}

/**
 * Runs `work` while another client reads a person in a loop. `refused` has every status of that client other than 200.
 */
async function withOtherClient<T>(work: () => Promise<T>): Promise<{ outcome: T; refused: number[]; peakMib: number }> {
  const refused: number[] = []
  let [running, peakMib] = [true, 0]
  const readInLoop = async () => {
    do {
      const { status } = await send('GET', '/v1/people/ada')
      if (status !== 200) refused.push(status)
      peakMib = Math.max(peakMib, memoryMib())
    } while (running)
  }
  const otherClient = readInLoop()
  const outcome = await work().finally(() => {
    running = false
  })
  await otherClient
  return { outcome, refused, peakMib }
}

const authorization = () => `Authorization: Bearer ${token}\r\n`
const json = 'Content-Type: application/json\r\n'
const chunked = 'Transfer-Encoding: chunked\r\n'
const post = (headers: string) => `POST /v1/people HTTP/1.1\r\nHost: kith\r\n${headers}\r\n`
const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
const manyHeaders = 'X-Field: value\r\n'.repeat(1_000)

// Without any limits the same attacks took 420 MiB more than usual.
const maxGrowthMib = 150

describe('a slow client', () => {
  it('is disconnected at the request deadline, in whatever part it is slow, while other clients are served', async () => {
    const slow = [
      { head: '' },
      { head: 'GET /healthz HTTP/1.1\r\nX-Slow: ', part: 'a', pauseMs: 50 },
      { head: post(`${authorization()}${json}Content-Length: 1000\r\n`), part: 'a', pauseMs: 50 },
      { head: post(`${authorization()}${json}${chunked}`), part: '1\r\na\r\n', pauseMs: 50 },
      // kith responds to these before their bodies are complete, and the client continues to send.
      { head: post(chunked), part: '1\r\na\r\n', pauseMs: 50 },
      { head: `GET /healthz HTTP/1.1\r\nHost: kith\r\n${chunked}\r\n`, part: '1\r\na\r\n', pauseMs: 50 },
    ]
    const { outcome, refused } = await withOtherClient(() => Promise.all(slow.map(attack)))
    expect(outcome.map(({ statuses }) => statuses)).toEqual([[504], [504], [504], [504], [401], [200]])
    expect(refused).toEqual([])
  })

  it('is disconnected when it does not read its responses', async () => {
    const socket = await openSocket(address)
    socket.pause()
    socket.write('GET /openapi.json HTTP/1.1\r\nHost: kith\r\n\r\n'.repeat(1_000))
    await expect.poll(() => kith.output.stdout, { timeout: 20_000 }).toMatch(/"route":"\/openapi.json","aborted":true/)
    socket.destroy()
  })
})

describe('a client that sends without end', () => {
  it.each([
    ['headers', () => ({ head: 'GET /healthz HTTP/1.1\r\n', part: manyHeaders }), 431],
    ['a request target', () => ({ head: 'GET /', part: 'x'.repeat(10_000) }), 431],
    ['chunk extensions', () => ({ head: `${post(`${authorization()}${json}${chunked}`)}1;`, part: manyHeaders }), 400],
    ['trailers', () => ({ head: `${post(`${authorization()}${json}${chunked}`)}0\r\n`, part: manyHeaders }), 431],
    ['a chunked body', () => ({ head: post(`${authorization()}${json}${chunked}`), part: chunk }), 413],
    [
      'a body with a Content-Length',
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
      'a body to an endpoint that reads none',
      () => ({ head: `GET /healthz HTTP/1.1\r\nHost: kith\r\n${chunked}\r\n`, part: chunk }),
      200,
    ],
  ])('is disconnected while memory stays flat and other clients are served: %s', async (_part, make, status) => {
    const { outcome, refused, peakMib } = await withOtherClient(() => attack(make()))
    // A client that still sends may get a connection reset before it reads the response.
    expect([[status], []]).toContainEqual(outcome.statuses)
    expect(outcome.sentMib).toBeLessThan(128)
    expect(peakMib).toBeLessThan(usualMib + maxGrowthMib)
    expect(refused).toEqual([])
  })
})

describe('pipelined requests on one connection', () => {
  it.each([
    ['reads', () => `GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\n${authorization()}\r\n`, 200],
    ['writes', () => `${post(`${authorization()}${json}Content-Length: 2\r\n`)}{}`, 201],
    ['requests without a token', () => post(''), 401],
  ])('end the connection with at most one 503 when they are 10,000 %s', async (_kind, make, status) => {
    const { outcome, refused, peakMib } = await withOtherClient(() => attack({ head: make().repeat(10_000) }))
    const answered = outcome.statuses.filter(found => found === status)
    expect(outcome.statuses.length).toBeLessThan(10_000)
    expect([...new Set(outcome.statuses)].filter(found => ![status, 503].includes(found))).toEqual([])
    expect(outcome.statuses.filter(found => found === 503).length).toBeLessThanOrEqual(1)
    expect(answered.length).toBeLessThan(10_000)
    expect(peakMib).toBeLessThan(usualMib + maxGrowthMib)
    expect(refused).toEqual([])
  })

  it('are all answered in order when they are thirty', async () => {
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
