import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lockPerson, openSocket, parseResponse } from '../../../test/support/process.ts'
import { type Reply, type Send, type Service, startService } from '../../../test/support/service.ts'
import { statement } from '../../db/db.ts'

let service: Service
let url: string
let send: Send
let token: string

beforeAll(async () => {
  service = await startService({ KITH_LIMIT_REQUEST_MS: '500' })
  url = await urlOf(service)
})

afterAll(() => service.stop())

beforeEach(async () => {
  ;({ send, token } = await service.organization())
  expect((await send('POST', '/v1/people', { external_id: 'ada', first_name: 'before' })).status).toBe(201)
  // People of the tests before would be locked along.
  await service.sql(
    `update entities set external_id = 'ada ' || id where external_id = 'ada' and first_name <> 'before'`,
  )
})

/** Where the database of a service is, as its own connections know it. */
async function urlOf({ db }: Service): Promise<string> {
  const client = await db.connect()
  const { host, port, user, password, database } = client
  await client.end()
  const place = host.startsWith('/')
    ? `localhost:${port}/${database}?host=${encodeURIComponent(host)}`
    : `${host}:${port}/${database}`
  return `postgresql://${user}:${password}@${place}`
}

function expectTimedOut({ status, body, headers }: Reply) {
  expect({ status, error: body.error }).toEqual({ status: 504, error: 'operation_failed' })
  expect(body.message).toContain('0.5 seconds')
  expect(body.errorstack).toEqual({ reason: body.message, request_id: headers.get('X-Request-Id') })
}

/** What the service's connections are doing: statements, or transactions left open. */
const busy = () =>
  service.sql(
    `select state, query from pg_stat_activity where datname = current_database() and application_name = 'kith'
       and state <> 'idle' and pid <> pg_backend_pid()`,
  )

describe('a request that takes longer than its time', () => {
  it.each([
    ['PATCH', '/v1/people/ada', { first_name: 'after' }],
    ['PUT', '/v1/people/ada', { first_name: 'after', attribute_values: { friend: 'nobody yet' } }],
    ['DELETE', '/v1/people/ada', undefined],
    ['POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'after' }],
    ['POST', '/v1/people/batch', { operations: [{ op: 'patch', external_id: 'ada', body: { first_name: 'after' } }] }],
  ])(
    '%s %s is cancelled on the server and answered 504, and nothing of it happens later',
    async (method, path, body) => {
      const lock = await lockPerson(url, 'ada')
      const reply = await send(method, path, body)
      expect(await busy()).toEqual([])
      if (path.endsWith('/batch') && reply.status === 200) expect(reply.body.data).toMatchObject([{ status: 504 }])
      else expectTimedOut(reply)
      await lock.release()
      expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'before', version: 1 })
      expect(await send('PATCH', '/v1/people/ada', { first_name: 'again' })).toMatchObject({ status: 200 })
    },
  )

  it('leaves all connections usable, however many run out of time at once', async () => {
    const lock = await lockPerson(url, 'ada')
    const tries = Array.from({ length: 24 }, () => send('PATCH', '/v1/people/ada', { first_name: 'after' }))
    for (const reply of await Promise.all(tries)) expectTimedOut(reply)
    expect(await busy()).toEqual([])
    await lock.release()
    const replies = await Promise.all(
      Array.from({ length: 24 }, (_, index) => send('PATCH', '/v1/people/ada', { last_name: `${index}` })),
    )
    expect(replies.map(({ status }) => status)).toEqual(new Array(24).fill(200))
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'before', version: 25 })
  })

  it('counts the waiting for a connection too', async () => {
    let free = () => {}
    const freed = new Promise<void>(resolve => {
      free = resolve
    })
    const taken = Array.from({ length: 8 }, () => service.db.transaction(async () => freed))
    for (const reply of [await send('GET', '/v1/people/ada'), await send('PATCH', '/v1/people/ada', {})])
      expectTimedOut(reply)
    free()
    await Promise.allSettled(taken)
    expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  })

  it('counts the token’s verification too', async () => {
    const other = await service.organization()
    const lock = await service.db.connect()
    await lock.query('begin; lock table organizations')
    expectTimedOut(await other.send('GET', '/v1/people/ada'))
    await lock.end()
    expect((await other.send('GET', '/v1/people/ada')).status).toBe(404)
  })
})

describe('a request that does not arrive in time', () => {
  const head = () =>
    `POST /v1/people HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
  const whole = '{"external_id":"slow"}'

  it.each([
    ['half of its body', () => `${head()}Content-Length: ${whole.length}\r\n\r\n${whole.slice(0, 9)}`],
    ['no body at all', () => `${head()}Content-Length: ${whole.length}\r\n\r\n`],
    ['a chunk without an end', () => `${head()}Transfer-Encoding: chunked\r\n\r\n9\r\n${whole.slice(0, 9)}\r\n`],
    ['half of its headers', () => head().slice(0, -20)],
  ])('with %s is answered 504, and its connection is closed', async (_, bytes) => {
    const socket = await openSocket(service.address)
    socket.write(bytes())
    const { status, body, head: received } = parseResponse(await text(socket))
    expect({ status, error: body.error }).toEqual({ status: 504, error: 'operation_failed' })
    expect(received.toLowerCase()).toContain('connection: close')
    expect((await send('GET', '/v1/people/slow')).status).toBe(404)
  })

  it('gets no more time by sending a little now and then', async () => {
    const socket = await openSocket(service.address)
    socket.write(`${head()}Content-Length: 1000\r\n\r\n`)
    const dripping = setInterval(() => socket.write(' '), 50)
    const answer = await text(socket)
    clearInterval(dripping)
    expect(parseResponse(answer).status).toBe(504)
  })
})

it('a read that waits is cancelled as well', async () => {
  const lock = await service.db.connect()
  await lock.query('begin; lock table entities')
  expectTimedOut(await send('GET', '/v1/people/ada'))
  await lock.end()
  expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  expect(await service.db.query(statement('', 'select 1 as one'), [])).toEqual([{ one: 1 }])
})
