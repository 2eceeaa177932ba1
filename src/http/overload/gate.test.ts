import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Lock, lockPerson, openSocket, parseResponse } from '../../../test/support/process.ts'
import { type Organization, type Service, startService } from '../../../test/support/service.ts'

const origin = 'https://app.example'

let service: Service
let one: Organization
let other: Organization
let lock: Lock | undefined
beforeAll(async () => {
  // An organization alone has half of each.
  const environment = {
    KITH_LIMIT_IN_FLIGHT: '6',
    KITH_LIMIT_IN_FLIGHT_BYTES: '1048576',
    KITH_CORS_ORIGINS: origin,
  }
  service = await startService(environment)
  one = await service.organization()
  other = await service.organization()
  for (const { send } of [one, other])
    expect((await send('POST', '/v1/people', { external_id: 'eve' })).status).toBe(201)
  expect((await one.send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
})
afterEach(() => lock?.release())
afterAll(() => service.stop())

/** Fills the organization's part with PATCHes that wait for a lock. */
async function fillPart() {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const answers = ['a', 'b', 'c'].map(first_name => one.send('PATCH', '/v1/people/ada', { first_name }))
  await expect.poll(lock.waiting).toBe(1)
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(503)
  return async () => {
    await lock!.release()
    return (await Promise.all(answers)).map(({ status }) => status)
  }
}

/** A connection by which one request after the other is asked, in parts that arrive apart. */
async function openConnection(address: string) {
  const socket = await openSocket(address)
  socket.setEncoding('latin1').setNoDelay(true)
  return {
    ask: async (parts: string[]) => {
      const answered = once(socket, 'data')
      for (const part of parts) {
        socket.write(part)
        // The other side is this very process: it has read by then.
        for (let turn = 0; turn < 4; turn += 1) await setImmediate()
      }
      return String((await answered)[0])
    },
    askToTheEnd: async (bytes: string) => {
      socket.write(bytes)
      return text(socket)
    },
    end: () => socket.destroy(),
  }
}

describe('an organization that has its part inside', () => {
  it('is refused more at once, in the envelope, and is told when to come again', async () => {
    const release = await fillPart()
    const headers = { 'X-Request-Id': 'mine', Origin: origin }
    const reply = await one.send('PATCH', '/v1/people/eve', { first_name: 'Eve' }, headers)
    expect(reply).toMatchObject({ status: 503, body: { error: 'operation_failed', details: [], request_id: 'mine' } })
    expect(reply.body.errorstack).toEqual({ reason: reply.body.message, request_id: 'mine' })
    const told = [
      'Retry-After',
      'X-Request-Id',
      'Cache-Control',
      'X-Content-Type-Options',
      'Access-Control-Allow-Origin',
    ]
    expect(told.map(name => reply.headers.get(name))).toEqual(['1', 'mine', 'no-store', 'nosniff', origin])
    expect(await release()).toEqual([200, 200, 200])
    expect((await one.send('GET', '/v1/people/eve')).body.data).toMatchObject({ version: 1, first_name: null })
  })

  it('leaves room for its neighbours, and for whoever asks how the service is', async () => {
    const release = await fillPart()
    expect((await other.send('PATCH', '/v1/people/eve', { first_name: 'Eve' })).status).toBe(200)
    expect((await fetch(`${service.address}/healthz`)).status).toBe(200)
    expect((await fetch(`${service.address}/readyz`)).status).toBe(200)
    await release()
  })

  it('is refused under every spelling of an address', async () => {
    const release = await fillPart()
    const socket = await openSocket(service.address)
    const answered = new Promise<string>(resolve =>
      socket.setEncoding('utf8').once('data', part => resolve(String(part))),
    )
    socket.write(
      `GET ${service.address}/%761/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`,
    )
    expect(parseResponse(await answered).status).toBe(503)
    socket.destroy()
    await release()
  })

  it.each([0, 1, 4])(
    'hears two refusals and is cut off where it sends on before it has heard a no, after %d of them',
    async heard => {
      const release = await fillPart()
      const get = `GET /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`
      const connection = await openConnection(service.address)
      for (let left = heard; left > 0; left -= 1) expect(await connection.ask([get])).toMatch(/^HTTP\/1\.1 503 /)
      const heads = (await connection.askToTheEnd(get.repeat(1_000))).split(/(?=HTTP\/1\.1 )/)
      expect(heads).toHaveLength(2)
      for (const head of heads) expect(head).toMatch(/^HTTP\/1\.1 503 /)
      expect(heads.map(head => /^connection: close/im.test(head))).toEqual([false, true])
      await release()
    },
  )

  it('is heard to the end of what it sends, however long that is, and then hears what it asks next', async () => {
    const release = await fillPart()
    for (const bytes of [100_000, 300_000, 3_000_000]) {
      const connection = await openConnection(service.address)
      const head = `HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n`
      const long = `POST /v1/people/batch ${head}Content-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`
      for (const asked of [long, long, `GET /v1/people/eve ${head}\r\n`])
        expect(await connection.ask([asked])).toMatch(/^HTTP\/1\.1 503 /)
      connection.end()
    }
    await release()
  })

  it('hears the same by one connection as often as it asks, in whatever way, and is let in as soon as there is room', async () => {
    const release = await fillPart()
    const connection = await openConnection(service.address)
    const ask = (more = '', body = '', method = 'PATCH') =>
      `${method} /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n${more}\r\n${body}`
    const ways: [name: string, ...parts: string[]][] = [
      ['usual', ask()],
      ['usual again', ask()],
      ['with a body', ask('Content-Length: 2\r\n', '{}')],
      ['with an origin', ask(`Origin: ${origin}\r\n`)],
      ['usual after that', ask()],
      ['without a body in its answer', ask('', '', 'HEAD')],
      ['in two parts', ask('Content-Length: 2\r\n'), '{}'],
      ['in chunks', ask('Transfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\n\r\n')],
      ['usual in the end', ask()],
    ]
    const answers: Record<string, string> = {}
    for (const [name, ...parts] of ways) answers[name] = await connection.ask(parts)
    for (const answer of Object.values(answers)) expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    // But for its id, its time and the order of its headers one answer is as the other.
    const told = (answer: string) => answer.replace(/[\da-f]{8}-[\da-f-]{27}/g, 'id').replace(/^Date: .*\r\n/m, '')
    for (const name of ['usual again', 'with a body', 'in two parts', 'in chunks', 'usual in the end'])
      expect([name, told(answers[name]!)]).toEqual([name, told(answers.usual!)])
    expect(answers['with an origin']).toContain(`Access-Control-Allow-Origin: ${origin}`)
    await release()
    expect(await connection.ask([ask('', '', 'GET')])).toMatch(/^HTTP\/1\.1 200 /)
    connection.end()
  })

  it('is served by a connection it was refused on, refused again, and served: each its own answer', async () => {
    const connection = await openConnection(service.address)
    const get = (id: string) =>
      `GET /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\nX-Request-Id: ${id}\r\n\r\n`
    let asked = 0
    const ask = async (times: number, status: number) => {
      for (let left = times; left > 0; left -= 1) {
        asked += 1
        const answer = await connection.ask([get(`id-${asked}`)])
        expect(answer).toContain(`HTTP/1.1 ${status} `)
        expect(answer).toContain(`X-Request-Id: id-${asked}\r\n`)
      }
    }
    for (let round = 0; round < 3; round += 1) {
      const release = await fillPart()
      await ask(4, 503)
      await release()
      await ask(4, 200)
    }
    connection.end()
  })

  it('is let in again when its requests are answered', async () => {
    await (await fillPart())()
    const statuses = [1, 2, 3].map(async () => (await one.send('GET', '/v1/people/eve')).status)
    expect(await Promise.all(statuses)).toEqual([200, 200, 200])
  })
})

describe('requests outside /v1', () => {
  /** Connects from an address of its own, and asks one thing. */
  async function askFrom(localAddress: string, head: string, headers = 'Connection: close\r\n') {
    const { hostname: host, port } = new URL(service.address)
    const socket = connect({ host, port: Number(port), localAddress })
    await once(socket, 'connect')
    socket.on('error', () => {})
    socket.write(`${head} HTTP/1.1\r\nHost: kith\r\n${headers}\r\n`)
    return socket
  }
  const answerTo = async (localAddress: string, path: string) => {
    const answer = await text(await askFrom(localAddress, `GET ${path}`))
    return { status: Number(answer.slice(9, 12)), after: /^retry-after: (\d+)/im.exec(answer)?.[1] }
  }

  it('have a share of their own, of which one address has half, and nobody else notices', async () => {
    const bodiless = 'Content-Length: 100\r\n'
    const waiting = await Promise.all(
      Array.from({ length: 64 }, () => askFrom('127.0.0.1', 'POST /oauth/token', bodiless)),
    )
    const refused = { status: 503, after: '1' }
    // All of them and the scrape. It comes from another address, for it would take the place of the last.
    const inFlight = async () =>
      Number(/^kith_http_requests_in_flight (\d+)/m.exec(await text(await askFrom('127.0.0.2', 'GET /metrics')))?.[1])
    await expect.poll(inFlight, { timeout: 10_000 }).toBe(65)
    for (const path of ['/metrics', '/openapi.json', '/docs', '/.well-known/jwks.json', '/nowhere'])
      expect(await answerTo('127.0.0.1', path), path).toEqual(refused)
    for (const path of ['/healthz', '/readyz']) expect((await answerTo('127.0.0.1', path)).status, path).toBe(200)
    for (const path of ['/metrics', '/openapi.json']) expect((await answerTo('127.0.0.2', path)).status, path).toBe(200)
    expect((await one.send('GET', '/v1/people/eve')).status).toBe(200)
    for (const socket of waiting) socket.destroy()
    await expect.poll(async () => (await answerTo('127.0.0.1', '/metrics')).status).toBe(200)
  })

  it('are answered while an organization has its part below /v1', async () => {
    const release = await fillPart()
    for (const path of ['/metrics', '/openapi.json', '/readyz'])
      expect((await answerTo('127.0.0.1', path)).status, path).toBe(200)
    await release()
  })

  it('may come by a connection that asks below /v1, too', async () => {
    const connection = await openConnection(service.address)
    const head = `HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`
    for (const path of ['/healthz', '/v1/people/eve', '/.well-known/jwks.json', '/v1/people/eve'])
      expect(await connection.ask([`GET ${path} ${head}`]), path).toMatch(/^HTTP\/1\.1 200 /)
    const release = await fillPart()
    const asked = ['/v1/people/eve', '/healthz', '/v1/people/eve', '/.well-known/jwks.json', '/v1/people/eve']
    const statuses: string[] = []
    for (const path of asked) statuses.push((await connection.ask([`GET ${path} ${head}`])).slice(9, 12))
    expect(statuses).toEqual(['503', '200', '503', '200', '503'])
    connection.end()
    await release()
  })
})

it('a write whose client has gone is inside until it is done', async () => {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const gone = new AbortController()
  const patch = fetch(`${service.address}/v1/people/ada?first_name=Ada`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${one.token}` },
    signal: gone.signal,
  })
  patch.catch(() => {})
  await expect.poll(lock.waiting).toBe(1)
  const told = service.logs.length
  gone.abort()
  await expect.poll(() => service.logs.slice(told).join('')).toContain('"aborted":true')
  const second = one.send('PATCH', '/v1/people/ada', { first_name: 'b' })
  const third = one.send('PATCH', '/v1/people/ada', { first_name: 'c' })
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(503)
  await lock.release()
  expect((await Promise.all([second, third])).map(({ status }) => status)).toEqual([200, 200])
})

it('requests that wait behind others on a connection are outside when it ends', async () => {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const socket = await openSocket(service.address)
  const request = (method: string, path: string) =>
    `${method} ${path} HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`
  const [patch, get] = [request('PATCH', '/v1/people/ada?first_name=Ada'), request('GET', '/v1/people/eve')]
  socket.write(`${patch}${get}${get}`)
  // Who asks before they are in would take the place of one of them.
  await expect.poll(lock.waiting).toBe(1)
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(503)
  socket.destroy()
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(200)
  await lock.release()
})

it('bodies count by their bytes: a large one is let in alone', async () => {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const large = `${JSON.stringify({ first_name: 'Ada' })}${' '.repeat(600_000)}`
  const patch = one.send('PATCH', '/v1/people/ada', large)
  await expect.poll(lock.waiting).toBe(1)
  expect((await one.send('PATCH', '/v1/people/eve', { first_name: 'Eve' })).status).toBe(503)
  expect((await one.send('GET', '/v1/people/eve')).status).toBe(200)
  await lock.release()
  expect((await patch).status).toBe(200)
})

it('the connections of an organization leave room for those of another; one too many is refused and closed', async () => {
  const request = ({ token }: Organization) =>
    `GET /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const crowded = await startService({ KITH_LIMIT_CONNECTIONS: '8' })
  const ask = async (organization: Organization) => {
    const socket = await openSocket(crowded.address)
    const answer = new Promise<string>(resolve =>
      socket.setEncoding('utf8').once('data', part => resolve(String(part))),
    )
    socket.write(request(organization))
    return { socket, ...parseResponse(await answer) }
  }
  const [mine, others] = [await crowded.organization(), await crowded.organization()]
  // Their tokens are known once they have been used, and nobody's before.
  for (const organization of [mine, others]) (await ask(organization)).socket.destroy()
  const asked = [await ask(mine)]
  while (asked.at(-1)!.status !== 503) asked.push(await ask(mine))
  expect(asked).toHaveLength(5)
  const refused = asked.at(-1)!
  expect(refused).toMatchObject({ status: 503, body: { error: 'operation_failed' } })
  expect(refused.head).toMatch(/retry-after: 1\r\n(?:.+\r\n)*connection: close/i)
  expect((await ask(others)).status).toBe(404)
  for (const { socket } of asked) socket.destroy()
  await expect.poll(async () => (await ask(mine)).status).toBe(404)
  await crowded.stop()
})
