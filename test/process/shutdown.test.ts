import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import {
  endProcesses,
  exchange,
  hasServer,
  type Kith,
  type Lock,
  launch,
  lockPerson,
  makeDataFolder,
  makeFolder,
  openSocket,
  parseResponse,
  senderTo,
  terminate,
  tokenFrom,
} from '../support/process.ts'
import type { Send } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
let lock: Lock | undefined

beforeEach(async () => {
  database = await createTestDatabase()
  environment = { DATABASE_URL: database.url }
})

afterEach(async () => {
  await lock?.release()
  await endProcesses()
  await database.drop()
})

type Service = { kith: Kith; address: string; send: Send; token: string }

/** Starts a service with one person, and locks the person's row on another connection. */
async function serveLocked(url = database.url): Promise<Service> {
  const kith = launch(environment)
  const address = await kith.ready
  const token = await tokenFrom(environment)
  const send = senderTo(address, token)
  expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  lock = await lockPerson(url, 'ada')
  return { kith, address, send, token }
}

/** Sends a PATCH, and waits until it waits for the lock. */
async function startPatch(send: Send) {
  const answer = send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
  answer.catch(() => {})
  await expect.poll(lock!.waiting).toBe(1)
  return { answer }
}

/** Waits until the service has noticed the signal. */
const untilDraining = ({ output }: Kith) => expect.poll(() => output.stdout).toContain('draining')

describe('SIGTERM while a request is in flight', () => {
  it('answers it, and others in the envelope meanwhile; returns 503 at /readyz and 200 at /healthz; then exits with 0', async () => {
    const { kith, address, send, token } = await serveLocked()
    const old = await openSocket(address)
    const patch = await startPatch(send)
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const answer = await fetch(`${address}/readyz`, { headers: { Connection: 'close' } })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
    expect(await answer.json()).toMatchObject({ error: 'operation_failed' })
    expect((await fetch(`${address}/healthz`, { headers: { Connection: 'close' } })).status).toBe(200)
    const request = `GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
    old.write(request)
    // On an old and on a new connection.
    for (const answer of [await text(old), await exchange(address, request)]) {
      const { status, body } = parseResponse(answer)
      if (status === 200) expect(body).toMatchObject({ status: 'Success', data: { external_id: 'ada' } })
      else
        expect({ status, ...body }).toMatchObject({
          status: 503,
          error: 'operation_failed',
          request_id: expect.any(String),
        })
    }
    await lock!.release()
    expect(await patch.answer).toMatchObject({ status: 200, body: { status: 'Success', data: true } })
    expect(await kith.ended).toBe(0)
    const rows = await query(database.url, `select first_name, version from entities where external_id = 'ada'`)
    expect(rows).toEqual([{ first_name: 'Ada', version: 2 }])
  })

  it('exits with 0 after the 504 of a request that cannot be completed', async () => {
    environment.KITH_LIMIT_REQUEST_MS = '5000'
    const { kith, send } = await serveLocked()
    const patch = await startPatch(send)
    expect(await terminate(kith)).toBe(0)
    expect(await patch.answer).toMatchObject({ status: 504, body: { error: 'operation_failed' } })
  })
})

/** The bytes of a request with the token of a {@link Service}. */
const formatRequest = ({ token }: Service, target: string, headers = '') =>
  `${target} HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n${headers}\r\n`

describe('SIGTERM with open connections', () => {
  it('serves a request on an open connection while it refuses those on new connections', async () => {
    const service = await serveLocked()
    const { kith, address, send } = service
    const patch = await startPatch(send)
    const old = await openSocket(address)
    const answer = text(old)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const request = formatRequest(service, 'GET /v1/people/ada')
    // A header now and then shows that the client is still sending the request.
    old.write(request.slice(0, -2))
    while (parseResponse(await exchange(address, request)).status === 200) old.write('X-On-Its-Way: yes\r\n')
    old.write('\r\n')
    expect(parseResponse(await answer)).toMatchObject({ status: 200, body: { data: { external_id: 'ada' } } })
    await lock!.release()
    expect((await patch.answer).status).toBe(200)
    expect(await kith.ended).toBe(0)
  })

  it('closes an idle connection with a 503, and does not run a request that arrives in that moment', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const socket = await openSocket(address)
    const faults: Error[] = []
    socket.on('error', error => faults.push(error))
    const parts: string[] = []
    const closed = once(socket.setEncoding('utf8'), 'close')
    socket.on('data', part => parts.push(String(part)))
    socket.write('GET /healthz HTTP/1.1\r\nHost: kith\r\n\r\n')
    await expect.poll(() => parts.join('')).toContain('"healthy":true')
    kith.child.kill('SIGTERM')
    await expect.poll(() => parts.length, { timeout: 10_000, interval: 1 }).toBeGreaterThan(1)
    socket.write(formatRequest({ token } as Service, 'POST /v1/people?external_id=late'))
    await closed
    const { status, head, body } = parseResponse(parts.slice(1).join(''))
    expect([status, body.error, faults]).toEqual([503, 'operation_failed', []])
    expect(head).toMatch(/^Connection: close\r$/m)
    expect(head).toMatch(/^Retry-After: 1\r$/m)
    expect(await kith.ended).toBe(0)
    expect(await query(database.url, 'select from entities')).toEqual([])
  })

  it('still serves a request on an idle connection right after the signal', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const socket = await openSocket(address)
    const answer = text(socket)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    socket.write(formatRequest({ token } as Service, 'POST /v1/people?external_id=ada'))
    expect(parseResponse(await answer).status).toBe(201)
    expect(await kith.ended).toBe(0)
  })

  it('answers all pipelined requests, and closes the connection after the last', async () => {
    const service = await serveLocked()
    const socket = await openSocket(service.address)
    const answers = text(socket)
    socket.write(
      formatRequest(service, 'PATCH /v1/people/ada?first_name=Ada') +
        formatRequest(service, 'POST /v1/people?external_id=bo'),
    )
    await expect.poll(lock!.waiting).toBe(1)
    service.kith.child.kill('SIGTERM')
    await untilDraining(service.kith)
    await lock!.release()
    const heads = (await answers).split(/(?=HTTP\/1\.1 )/)
    expect(heads.map(head => [parseResponse(head).status, /^Connection: close\r$/m.test(head)])).toEqual([
      [200, false],
      [201, true],
    ])
    expect(await service.kith.ended).toBe(0)
  })
})

describe('a shutdown', () => {
  it('does not wait for clients that disconnected before their response', async () => {
    const { kith, address, token } = await serveLocked()
    for (const request of ['GET /v1/people/ada', 'PATCH /v1/people/ada?first_name=Ada']) {
      const socket = await openSocket(address)
      socket.write(`${request} HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      if (request.startsWith('PATCH')) await expect.poll(lock!.waiting).toBe(1)
      socket.destroy()
    }
    await expect.poll(() => kith.output.stdout).toContain('"aborted":true')
    await lock!.release()
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    // No request is in flight, so the shutdown does not wait for the drain timeout.
    const ended = await Promise.race([kith.ended, setTimeout(5_000, 'still there')])
    expect(ended).toBe(0)
    expect(await query(database.url, `select first_name from entities where external_id = 'ada'`)).toEqual([
      { first_name: 'Ada' },
    ])
  })

  it('does not wait for clients that keep sending requests, and answers them with 503 after a moment', async () => {
    environment.KITH_LIMIT_REQUEST_MS = '5000'
    const { kith, address, send, token } = await serveLocked()
    const patch = await startPatch(send)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const request = `GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n\r\n`
    let last = parseResponse(await exchange(address, request))
    while (last.status === 200) last = parseResponse(await exchange(address, request))
    expect(last).toMatchObject({ status: 503, body: { error: 'operation_failed' } })
    expect(last.head).toMatch(/retry-after: 1/i)
    await lock!.release()
    expect((await patch.answer).status).toBe(200)
    expect(await kith.ended).toBe(0)
  })

  it('does not wait for a connection without any request, nor for a client that keeps its connection alive', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const socket = await openSocket(address)
    const closed = new Promise(resolve => socket.resume().once('close', resolve))
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    expect(await terminate(kith)).toBe(0)
    await closed
  })

  it('waits for an incomplete body only until the request deadline', async () => {
    environment.KITH_LIMIT_REQUEST_MS = '1000'
    const kith = launch(environment)
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const socket = await openSocket(address)
    socket.write(
      `POST /v1/people HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n{"first_`,
    )
    // The signal must not reach the service before the request.
    const [received] = await once(socket, 'data')
    expect(String(received)).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    const answer = text(socket)
    expect(await terminate(kith)).toBe(0)
    expect(parseResponse(await answer)).toMatchObject({ status: 504, body: { error: 'operation_failed' } })
  })
})

/** The URL of a running service's embedded database. */
async function embeddedUrl(dataDir: string): Promise<string> {
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  await stop()
  return url
}

it('stops the embedded PostgreSQL after requests in flight are stored', async () => {
  const dataDir = await makeDataFolder()
  environment = { KITH_DATA_DIR: dataDir }
  const kith = launch(environment)
  await kith.ready
  const url = await embeddedUrl(dataDir)
  const send = senderTo(await kith.ready, await tokenFrom(environment))
  await send('POST', '/v1/people', { external_id: 'ada' })
  lock = await lockPerson(url, 'ada')
  const patch = await startPatch(send)
  kith.child.kill('SIGTERM')
  await untilDraining(kith)
  await lock!.release()
  expect((await patch.answer).status).toBe(200)
  expect(await kith.ended).toBe(0)
  expect(await hasServer(dataDir)).toBe(false)

  const next = launch(environment)
  const sendToNext = senderTo(await next.ready, await tokenFrom(environment))
  expect((await sendToNext('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'Ada', version: 2 })
  expect(await terminate(next)).toBe(0)
})

it('leaves no embedded PostgreSQL behind after SIGTERM during the start', async () => {
  const dataDir = join(await makeFolder(), '.kith')
  const kith = launch({ KITH_DATA_DIR: dataDir })
  await expect.poll(() => hasServer(dataDir), { interval: 5, timeout: 25_000 }).toBe(true)
  await terminate(kith)
  expect(await hasServer(dataDir)).toBe(false)
})
