import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { signIn } from '../../../test/support/browser-session.ts'
import { type Lock, lockPerson, lockTable, openSocket, parseResponse } from '../../../test/support/process.ts'
import { type Organization, startService, useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const origin = 'https://app.example'

// A lone organization has half of each limit.
const environment = {
  KITH_LIMIT_IN_FLIGHT: '6',
  KITH_LIMIT_IN_FLIGHT_BYTES: '1048576',
  KITH_CORS_ORIGINS: origin,
}

const service = useOwnService(environment)
const one = useSharedShop(service)
const other = useSharedShop(service)
let lock: Lock | undefined
beforeAll(async () => {
  for (const { send } of [one, other])
    expect((await send('POST', '/v1/people', { external_id: 'eve' })).status).toBe(201)
  expect((await one.send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
})
afterEach(() => lock?.release())

/** Fills the organization's share with PATCHes that wait for a lock. */
async function fillShare(send = one.send) {
  lock = await lockPerson(service.databaseUrl, 'ada')
  // The gate determines the tenant of a request from tokens of the last seconds.
  await send('GET', '/v1/people/eve')
  const answers = ['a', 'b', 'c'].map(first_name => send('PATCH', '/v1/people/ada', { first_name }))
  await expect.poll(lock.waiting).toBe(1)
  await expect.poll(async () => (await send('GET', '/v1/people/eve')).status).toBe(503)
  return async () => {
    await lock!.release()
    return (await Promise.all(answers)).map(({ status }) => status)
  }
}

/** A connection that sends requests one after the other, in parts that arrive separately. */
async function openConnection(address: string) {
  const socket = await openSocket(address)
  socket.setEncoding('latin1').setNoDelay(true)
  return {
    send: async (parts: string[]) => {
      const answered = once(socket, 'data')
      for (const part of parts) {
        socket.write(part)
        // The service runs in this process and has read the part after four turns.
        for (let turn = 0; turn < 4; turn += 1) await setImmediate()
      }
      return String((await answered)[0])
    },
    sendUntilClosed: async (bytes: string) => {
      socket.write(bytes)
      return text(socket)
    },
    end: () => socket.destroy(),
  }
}

describe('an organization that has used up its share', () => {
  it('gets an immediate 503 in the error format with Retry-After', async () => {
    const release = await fillShare()
    const headers = { 'X-Request-Id': 'mine', Origin: origin }
    const reply = await one.send('PATCH', '/v1/people/eve', { first_name: 'Eve' }, headers)
    expect(reply).toMatchObject({ status: 503, body: { error: 'operation_failed', details: [], request_id: 'mine' } })
    expect(reply.body.errorstack).toEqual({ reason: reply.body.message, request_id: 'mine' })
    const names = [
      'Retry-After',
      'X-Request-Id',
      'Cache-Control',
      'X-Content-Type-Options',
      'Access-Control-Allow-Origin',
    ]
    expect(names.map(name => reply.headers.get(name))).toEqual(['1', 'mine', 'no-store', 'nosniff', origin])
    expect(await release()).toEqual([200, 200, 200])
    expect((await one.send('GET', '/v1/people/eve')).body.data).toMatchObject({ version: 1, first_name: null })
  })

  it('leaves room for other organizations and for probes', async () => {
    const release = await fillShare()
    expect((await other.send('PATCH', '/v1/people/eve', { first_name: 'Eve' })).status).toBe(200)
    expect((await fetch(`${service.address}/healthz`)).status).toBe(200)
    expect((await fetch(`${service.address}/readyz`)).status).toBe(200)
    await release()
  })

  it('is refused in its pages of the console too, and other organizations are not', async () => {
    const pages = [await signIn(service, one), await signIn(service, other)]
    for (const { send } of pages) expect((await send('GET', '/v1/people/eve')).status).toBe(200)
    const release = await fillShare()
    const statuses = []
    for (const { send } of pages) statuses.push((await send('GET', '/v1/people/eve')).status)
    expect(statuses).toEqual([503, 200])
    await release()
  })

  it('is refused for every spelling of a path', async () => {
    const release = await fillShare()
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
    'gets two refusals and a closed connection if it pipelines past an unread 503, after %d refusals that it read',
    async readRefusals => {
      const release = await fillShare()
      const get = `GET /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`
      const connection = await openConnection(service.address)
      for (let left = readRefusals; left > 0; left -= 1)
        expect(await connection.send([get])).toMatch(/^HTTP\/1\.1 503 /)
      const heads = (await connection.sendUntilClosed(get.repeat(1_000))).split(/(?=HTTP\/1\.1 )/)
      expect(heads).toHaveLength(2)
      for (const head of heads) expect(head).toMatch(/^HTTP\/1\.1 503 /)
      expect(heads.map(head => /^connection: close/im.test(head))).toEqual([false, true])
      await release()
    },
  )

  it('may send a refused body of any length to its end and is then answered on the same connection', async () => {
    const release = await fillShare()
    for (const bytes of [100_000, 300_000, 3_000_000]) {
      const connection = await openConnection(service.address)
      const head = `HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n`
      const long = `POST /v1/people/batch ${head}Content-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`
      for (const request of [long, long, `GET /v1/people/eve ${head}\r\n`])
        expect(await connection.send([request])).toMatch(/^HTTP\/1\.1 503 /)
      connection.end()
    }
    await release()
  })

  it('gets the same refusal for any form of request on one connection, and is admitted when there is room', async () => {
    const release = await fillShare()
    const connection = await openConnection(service.address)
    const request = (more = '', body = '', method = 'PATCH') =>
      `${method} /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n${more}\r\n${body}`
    const forms: [name: string, ...parts: string[]][] = [
      ['usual', request()],
      ['usual again', request()],
      ['with a body', request('Content-Length: 2\r\n', '{}')],
      ['with an origin', request(`Origin: ${origin}\r\n`)],
      ['usual after that', request()],
      ['without a body in its response', request('', '', 'HEAD')],
      ['in two parts', request('Content-Length: 2\r\n'), '{}'],
      ['in chunks', request('Transfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\n\r\n')],
      ['usual at the end', request()],
    ]
    const answers: Record<string, string> = {}
    for (const [name, ...parts] of forms) answers[name] = await connection.send(parts)
    for (const answer of Object.values(answers)) expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    // The responses differ only in id and time.
    const constantPart = (answer: string) =>
      answer.replace(/[\da-f]{8}-[\da-f-]{27}/g, 'id').replace(/^Date: .*\r\n/m, '')
    for (const name of ['usual again', 'with a body', 'in two parts', 'in chunks', 'usual at the end'])
      expect([name, constantPart(answers[name]!)]).toEqual([name, constantPart(answers.usual!)])
    expect(answers['with an origin']).toContain(`Access-Control-Allow-Origin: ${origin}`)
    await release()
    expect(await connection.send([request('', '', 'GET')])).toMatch(/^HTTP\/1\.1 200 /)
    connection.end()
  })

  it('gets the right response to each request on a connection that is refused and served in turn', async () => {
    const connection = await openConnection(service.address)
    const get = (id: string) =>
      `GET /v1/people/eve HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\nX-Request-Id: ${id}\r\n\r\n`
    let count = 0
    const ask = async (times: number, status: number) => {
      for (let left = times; left > 0; left -= 1) {
        count += 1
        const answer = await connection.send([get(`id-${count}`)])
        expect(answer).toContain(`HTTP/1.1 ${status} `)
        expect(answer).toContain(`X-Request-Id: id-${count}\r\n`)
      }
    }
    for (let round = 0; round < 3; round += 1) {
      const release = await fillShare()
      await ask(4, 503)
      await release()
      await ask(4, 200)
    }
    connection.end()
  })

  it('is admitted again when its requests are answered', async () => {
    await (await fillShare())()
    const statuses = [1, 2, 3].map(async () => (await one.send('GET', '/v1/people/eve')).status)
    expect(await Promise.all(statuses)).toEqual([200, 200, 200])
  })
})

describe('requests outside /v1', () => {
  /** Connects from a local address and sends one request. */
  async function askFrom(localAddress: string, head: string, rest = 'Connection: close\r\n\r\n') {
    const { hostname: host, port } = new URL(service.address)
    const socket = connect({ host, port: Number(port), localAddress })
    await once(socket, 'connect')
    socket.on('error', () => {})
    socket.write(`${head} HTTP/1.1\r\nHost: kith\r\n${rest}`)
    return socket
  }
  const answerTo = async (localAddress: string, path: string) => {
    const answer = await text(await askFrom(localAddress, `GET ${path}`))
    return { status: Number(answer.slice(9, 12)), after: /^retry-after: (\d+)/im.exec(answer)?.[1] }
  }

  /** A complete token request of an unknown client. Each client has a separate count of failures. */
  const tokenRequest = (index: number) => {
    const client_id = `${one.key}.${String(index).padStart(16, '0')}`
    const form = `grant_type=client_credentials&client_id=${client_id}&client_secret=x`
    return `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n${form}`
  }

  it('have a share of their own, of which one network has half, and do not affect others', async () => {
    const lock = await lockTable(service.databaseUrl, 'clients')
    onTestFinished(lock.release)
    const late = await askFrom('127.0.0.1', 'POST /oauth/token', tokenRequest(80).slice(0, -3))
    const waiting = await Promise.all(
      Array.from({ length: 80 }, (_, index) => askFrom('127.0.0.1', 'POST /oauth/token', tokenRequest(index))),
    )
    const refused = { status: 503, after: '1' }
    await expect.poll(() => answerTo('127.0.0.1', '/openapi.json')).toEqual(refused)
    for (const path of ['/metrics', '/openapi.json', '/docs/api', '/.well-known/jwks.json', '/nowhere'])
      expect(await answerTo('127.0.0.1', path), path).toEqual(refused)
    // The body becomes complete when no slot is free.
    late.write('t=x')
    expect(String((await once(late, 'data'))[0])).toMatch(/^HTTP\/1\.1 503 /)
    // All database connections wait for the lock. These requests do not use the database.
    expect((await answerTo('127.0.0.1', '/healthz')).status).toBe(200)
    for (const path of ['/openapi.json', '/docs/api'])
      expect((await answerTo('127.0.0.2', path)).status, path).toBe(200)
    expect((await answerTo('127.0.0.1', '/v1/people/eve')).status).toBe(401)
    await lock.release()
    const statuses = await Promise.all(
      waiting.map(async socket => String((await once(socket, 'data'))[0]).slice(9, 12)),
    )
    expect(new Set(statuses)).toEqual(new Set(['401', '503']))
    // A polling request may have taken one of the 64 slots.
    const admitted = statuses.filter(status => status === '401').length
    expect([63, 64]).toContain(admitted)
    await expect.poll(async () => (await answerTo('127.0.0.1', '/metrics')).status).toBe(200)
    for (const socket of [late, ...waiting]) socket.destroy()
  })

  it('count the addresses of an IPv6 network of /64 as one', async () => {
    const behind = await startService({ KITH_BEHIND_PROXY: '1' }, service.databaseUrl)
    const lock = await lockTable(service.databaseUrl, 'clients')
    onTestFinished(lock.release)
    const askAs = async (address: string, line: string, rest = '\r\n') => {
      const socket = await openSocket(behind.address)
      socket.write(`${line} HTTP/1.1\r\nHost: kith\r\nX-Forwarded-For: ${address}\r\n${rest}`)
      return socket
    }
    const statusFor = async (address: string) => {
      const socket = await askAs(address, 'GET /.well-known/jwks.json')
      const answer = String((await once(socket, 'data'))[0])
      socket.destroy()
      return Number(answer.slice(9, 12))
    }
    const waiting = await Promise.all(
      Array.from({ length: 80 }, (_, index) =>
        askAs(`2001:db8:1:1::${index.toString(16)}`, 'POST /oauth/token', tokenRequest(index)),
      ),
    )
    await expect.poll(() => statusFor('2001:db8:1:1:ffff::1')).toBe(503)
    expect(await statusFor('2001:db8:1:2::1')).toBe(200)
    await lock.release()
    for (const socket of waiting) await once(socket, 'data')
    for (const socket of waiting) socket.destroy()
    await behind.stop()
  })

  it('are answered while an organization has used up its share below /v1', async () => {
    const release = await fillShare()
    for (const path of ['/metrics', '/openapi.json', '/readyz'])
      expect((await answerTo('127.0.0.1', path)).status, path).toBe(200)
    await release()
  })

  it('may share a connection with requests below /v1', async () => {
    const connection = await openConnection(service.address)
    const head = `HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`
    for (const path of ['/healthz', '/v1/people/eve', '/.well-known/jwks.json', '/v1/people/eve'])
      expect(await connection.send([`GET ${path} ${head}`]), path).toMatch(/^HTTP\/1\.1 200 /)
    const release = await fillShare()
    const paths = ['/v1/people/eve', '/healthz', '/v1/people/eve', '/.well-known/jwks.json', '/v1/people/eve']
    const statuses: string[] = []
    for (const path of paths) statuses.push((await connection.send([`GET ${path} ${head}`])).slice(9, 12))
    expect(statuses).toEqual(['503', '200', '503', '200', '503'])
    connection.end()
    await release()
  })
})

it('counts a write whose client has disconnected until it is done', async () => {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const disconnect = new AbortController()
  const patch = fetch(`${service.address}/v1/people/ada?first_name=Ada`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${one.token}` },
    signal: disconnect.signal,
  })
  patch.catch(() => {})
  await expect.poll(lock.waiting).toBe(1)
  const logged = service.logs.length
  disconnect.abort()
  await expect.poll(() => service.logs.slice(logged).join('')).toContain('"aborted":true')
  const second = one.send('PATCH', '/v1/people/ada', { first_name: 'b' })
  const third = one.send('PATCH', '/v1/people/ada', { first_name: 'c' })
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(503)
  await lock.release()
  expect((await Promise.all([second, third])).map(({ status }) => status)).toEqual([200, 200])
})

it('releases requests that wait behind others on a connection when the connection closes', async () => {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const socket = await openSocket(service.address)
  const request = (method: string, path: string) =>
    `${method} ${path} HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${one.token}\r\n\r\n`
  const [patch, get] = [request('PATCH', '/v1/people/ada?first_name=Ada'), request('GET', '/v1/people/eve')]
  socket.write(`${patch}${get}${get}`)
  // A GET that arrives before all three are admitted would take the slot of one of them.
  await expect.poll(lock.waiting).toBe(1)
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(503)
  socket.destroy()
  await expect.poll(async () => (await one.send('GET', '/v1/people/eve')).status).toBe(200)
  await lock.release()
})

it('counts bodies by their bytes and admits a large one alone', async () => {
  lock = await lockPerson(service.databaseUrl, 'ada')
  const large = `${JSON.stringify({ first_name: 'Augusta' })}${' '.repeat(600_000)}`
  const patch = one.send('PATCH', '/v1/people/ada', large)
  await expect.poll(lock.waiting).toBe(1)
  expect((await one.send('PATCH', '/v1/people/eve', { first_name: 'Eve' })).status).toBe(503)
  expect((await one.send('GET', '/v1/people/eve')).status).toBe(200)
  await lock.release()
  expect((await patch).status).toBe(200)
})

it('leaves room for the connections of another organization, and refuses and closes one too many', async () => {
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
  // A token is cached after its first use. Until then its requests have no tenant.
  for (const organization of [mine, others]) (await ask(organization)).socket.destroy()
  const replies = [await ask(mine)]
  while (replies.at(-1)!.status !== 503) replies.push(await ask(mine))
  expect(replies).toHaveLength(5)
  const refused = replies.at(-1)!
  expect(refused).toMatchObject({ status: 503, body: { error: 'operation_failed' } })
  expect(refused.head).toMatch(/retry-after: 1\r\n(?:.+\r\n)*connection: close/i)
  expect((await ask(others)).status).toBe(404)
  for (const { socket } of replies) socket.destroy()
  await expect.poll(async () => (await ask(mine)).status).toBe(404)
  await crowded.stop()
})
