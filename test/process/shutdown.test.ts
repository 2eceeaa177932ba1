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
  makeFolder,
  openSocket,
  parseAnswer,
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

type Ground = { kith: Kith; address: string; send: Send; token: string }

/** A service with one person, whose row is locked by somebody else. */
async function serveLocked(url = database.url): Promise<Ground> {
  const kith = launch(environment)
  const address = await kith.ready
  const token = await tokenFrom(environment)
  const send = senderTo(address, token)
  expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  lock = await lockPerson(url, 'ada')
  return { kith, address, send, token }
}

/** A PATCH that waits for the lock. */
async function startPatch(send: Send) {
  const answer = send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
  answer.catch(() => {})
  await expect.poll(lock!.waiting).toBe(1)
  return { answer }
}

/** Waits until the service has noticed the signal. */
const untilDraining = ({ said }: Kith) => expect.poll(() => said.stdout).toContain('draining')

describe('SIGTERM while a request is in flight', () => {
  it('lets it be answered, and then ends with 0', async () => {
    const { kith, send } = await serveLocked()
    const patch = await startPatch(send)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    await lock!.release()
    expect(await patch.answer).toMatchObject({ status: 200, body: { status: 'Success', data: true } })
    expect(await kith.ended).toBe(0)
    const rows = await query(database.url, `select first_name, version from entities where external_id = 'ada'`)
    expect(rows).toEqual([{ first_name: 'Ada', version: 2 }])
  })

  it('turns /readyz to 503 for whoever asks meanwhile, and /healthz stays', async () => {
    const { kith, address, send } = await serveLocked()
    const patch = await startPatch(send)
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const answer = await fetch(`${address}/readyz`, { headers: { Connection: 'close' } })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
    expect(await answer.json()).toMatchObject({ error: 'operation_failed' })
    expect((await fetch(`${address}/healthz`, { headers: { Connection: 'close' } })).status).toBe(200)
    await lock!.release()
    expect((await patch.answer).status).toBe(200)
    expect(await kith.ended).toBe(0)
  })

  it('answers in its envelope whatever comes meanwhile, on connections old and new', async () => {
    const { kith, address, send, token } = await serveLocked()
    const old = await openSocket(address)
    const patch = await startPatch(send)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const request = `GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
    old.write(request)
    for (const answer of [await text(old), await exchange(address, request)]) {
      const { status, body } = parseAnswer(answer)
      if (status === 200) expect(body).toMatchObject({ status: 'Success', data: { external_id: 'ada' } })
      else
        expect({ status, ...body }).toMatchObject({
          status: 503,
          error: 'operation_failed',
          request_id: expect.any(String),
        })
    }
    await lock!.release()
    expect((await patch.answer).status).toBe(200)
    expect(await kith.ended).toBe(0)
  })

  it('ends with 0 within the time when the request never can be answered but by 504', async () => {
    environment.KITH_LIMIT_REQUEST_MS = '5000'
    const { kith, send } = await serveLocked()
    const patch = await startPatch(send)
    expect(await terminate(kith)).toBe(0)
    expect(await patch.answer).toMatchObject({ status: 504, body: { error: 'operation_failed' } })
  })
})

/** The bytes of a request with the token of a {@link Ground}. */
const bytesOf = ({ token }: Ground, target: string, headers = '') =>
  `${target} HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n${headers}\r\n`

describe('SIGTERM and connections that were open before', () => {
  it('serves a request that arrives by one of them while requests of new connections are refused', async () => {
    const ground = await serveLocked()
    const { kith, address, send } = ground
    const patch = await startPatch(send)
    const old = await openSocket(address)
    const answer = text(old)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const request = bytesOf(ground, 'GET /v1/people/ada')
    // A byte now and then shows that the request is on its way.
    old.write(request.slice(0, -2))
    while (parseAnswer(await exchange(address, request)).status === 200) old.write('X-On-Its-Way: yes\r\n')
    old.write('\r\n')
    expect(parseAnswer(await answer)).toMatchObject({ status: 200, body: { data: { external_id: 'ada' } } })
    await lock!.release()
    expect((await patch.answer).status).toBe(200)
    expect(await kith.ended).toBe(0)
  })

  it('ends an idle one by a 503 that answers what the client sends in that moment, which is not begun', async () => {
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
    socket.write(bytesOf({ token } as Ground, 'POST /v1/people?external_id=late'))
    await closed
    const { status, head, body } = parseAnswer(parts.slice(1).join(''))
    expect([status, body.error, faults]).toEqual([503, 'operation_failed', []])
    expect(head).toMatch(/^Connection: close\r$/m)
    expect(head).toMatch(/^Retry-After: 1\r$/m)
    expect(await kith.ended).toBe(0)
    expect(await query(database.url, 'select from entities')).toEqual([])
  })

  it('leaves an idle one open for as long as everything is served, though nothing was asked for a while', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const socket = await openSocket(address)
    const answer = text(socket)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    socket.write(bytesOf({ token } as Ground, 'POST /v1/people?external_id=ada'))
    expect(parseAnswer(await answer).status).toBe(201)
    expect(await kith.ended).toBe(0)
  })

  it('answers all requests that were sent together, and closes after the last', async () => {
    const ground = await serveLocked()
    const socket = await openSocket(ground.address)
    const answers = text(socket)
    socket.write(
      bytesOf(ground, 'PATCH /v1/people/ada?first_name=Ada') + bytesOf(ground, 'POST /v1/people?external_id=bo'),
    )
    await expect.poll(lock!.waiting).toBe(1)
    ground.kith.child.kill('SIGTERM')
    await untilDraining(ground.kith)
    await lock!.release()
    const heads = (await answers).split(/(?=HTTP\/1\.1 )/)
    expect(heads.map(head => [parseAnswer(head).status, /^Connection: close\r$/m.test(head)])).toEqual([
      [200, false],
      [201, true],
    ])
    expect(await ground.kith.ended).toBe(0)
  })
})

describe('SIGTERM is not held up', () => {
  it('by clients that went away before they were answered', async () => {
    const { kith, address, token } = await serveLocked()
    for (const request of ['GET /v1/people/ada', 'PATCH /v1/people/ada?first_name=Ada']) {
      const socket = await openSocket(address)
      socket.write(`${request} HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      if (request.startsWith('PATCH')) await expect.poll(lock!.waiting).toBe(1)
      socket.destroy()
    }
    await expect.poll(() => kith.said.stdout).toContain('"aborted":true')
    await lock!.release()
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    // Nobody is inside: nothing is waited for, least of all the patience of a drain.
    const ended = await Promise.race([kith.ended, setTimeout(5_000, 'still there')])
    expect(ended).toBe(0)
    expect(await query(database.url, `select first_name from entities where external_id = 'ada'`)).toEqual([
      { first_name: 'Ada' },
    ])
  })

  it('by clients that come again and again: after a moment they are told to go elsewhere', async () => {
    environment.KITH_LIMIT_REQUEST_MS = '5000'
    const { kith, address, send, token } = await serveLocked()
    const patch = await startPatch(send)
    kith.child.kill('SIGTERM')
    await untilDraining(kith)
    const request = `GET /v1/people/ada HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n\r\n`
    let last = parseAnswer(await exchange(address, request))
    while (last.status === 200) last = parseAnswer(await exchange(address, request))
    expect(last).toMatchObject({ status: 503, body: { error: 'operation_failed' } })
    expect(last.head).toMatch(/retry-after: 1/i)
    await lock!.release()
    expect((await patch.answer).status).toBe(200)
    expect(await kith.ended).toBe(0)
  })

  it('by a connection on which nothing was ever asked', async () => {
    const kith = launch(environment)
    const socket = await openSocket(await kith.ready)
    const closed = new Promise(resolve => socket.resume().once('close', resolve))
    expect(await terminate(kith)).toBe(0)
    await closed
  })

  it('by a client that keeps its connection', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    expect((await fetch(`${address}/readyz`)).status).toBe(200)
    expect(await terminate(kith)).toBe(0)
  })

  it('by a body that never comes', async () => {
    environment.KITH_LIMIT_REQUEST_MS = '1000'
    const kith = launch(environment)
    const address = await kith.ready
    const token = await tokenFrom(environment)
    const socket = await openSocket(address)
    socket.write(
      `POST /v1/people HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n{"first_`,
    )
    // The signal must not overtake the request.
    const [heard] = await once(socket, 'data')
    expect(String(heard)).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    const answer = text(socket)
    expect(await terminate(kith)).toBe(0)
    expect(parseAnswer(await answer)).toMatchObject({ status: 504, body: { error: 'operation_failed' } })
  })
})

/** The embedded database of a service that runs. */
async function urlOf(dataDir: string): Promise<string> {
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  await stop()
  return url
}

it('SIGTERM stops the embedded PostgreSQL last: what was in flight is stored', async () => {
  const dataDir = join(await makeFolder(), '.kith')
  environment = { KITH_DATA_DIR: dataDir }
  const kith = launch(environment)
  await kith.ready
  const url = await urlOf(dataDir)
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
  const reading = senderTo(await next.ready, await tokenFrom(environment))
  expect((await reading('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'Ada', version: 2 })
  expect(await terminate(next)).toBe(0)
})

it('SIGTERM while the service starts leaves no embedded PostgreSQL behind', async () => {
  const dataDir = join(await makeFolder(), '.kith')
  const kith = launch({ KITH_DATA_DIR: dataDir })
  await expect.poll(() => hasServer(dataDir), { interval: 5, timeout: 25_000 }).toBe(true)
  await terminate(kith)
  expect(await hasServer(dataDir)).toBe(false)
})
