import { text } from 'node:stream/consumers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lockPerson, openSocket, parseResponse } from '../../../test/support/process.ts'
import { type Reply, type Service, useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { statement } from '../../db/db.ts'

const service = useOwnService({ KITH_LIMIT_REQUEST_MS: '500' })
let url: string

beforeAll(async () => {
  url = await urlOf(service)
})

const shop = useShop(service)
const { send } = shop
beforeEach(async () => {
  expect((await send('POST', '/v1/people', { external_id: 'ada', first_name: 'before' })).status).toBe(201)
  // Otherwise the lock would include the people of earlier tests.
  await service.sql(
    `update entities set external_id = 'ada ' || id where external_id = 'ada' and first_name <> 'before'`,
  )
})

/** The URL of a service's database, read from one of its connections. */
async function urlOf({ db }: Service): Promise<string> {
  const client = await db.connect()
  const { host, port, user, password, database } = client
  await client.end()
  const location = host.startsWith('/')
    ? `localhost:${port}/${database}?host=${encodeURIComponent(host)}`
    : `${host}:${port}/${database}`
  return `postgresql://${user}:${password}@${location}`
}

function expectTimedOut({ status, body, headers }: Reply) {
  expect({ status, error: body.error }).toEqual({ status: 504, error: 'operation_failed' })
  expect(body.message).toContain('0.5 seconds')
  expect(body.errorstack).toEqual({ reason: body.message, request_id: headers.get('X-Request-Id') })
}

/** The service's connections with a running statement or an open transaction. */
const readActive = () =>
  service.sql(
    `select state, query from pg_stat_activity where datname = current_database() and application_name = 'kith'
       and state <> 'idle' and pid <> pg_backend_pid()`,
  )

describe('a request that exceeds its deadline', () => {
  it.each([
    ['PATCH', '/v1/people/ada', { first_name: 'after' }],
    ['PUT', '/v1/people/ada', { first_name: 'after', attribute_values: { friend: 'nobody yet' } }],
    ['DELETE', '/v1/people/ada', undefined],
    ['POST', '/v1/people/upsert', { external_id: 'ada', first_name: 'after' }],
    ['POST', '/v1/people/batch', { operations: [{ op: 'patch', external_id: 'ada', body: { first_name: 'after' } }] }],
  ])('%s %s is cancelled on the server and gets 504, and has no effect later', async (method, path, body) => {
    const lock = await lockPerson(url, 'ada')
    const reply = await send(method, path, body)
    expect(await readActive()).toEqual([])
    if (path.endsWith('/batch') && reply.status === 200) expect(reply.body.data).toMatchObject([{ status: 504 }])
    else expectTimedOut(reply)
    await lock.release()
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'before', version: 1 })
    expect(await send('PATCH', '/v1/people/ada', { first_name: 'again' })).toMatchObject({ status: 200 })
  })

  it('leaves all connections usable if many exceed it at the same time', async () => {
    const lock = await lockPerson(url, 'ada')
    const patches = Array.from({ length: 24 }, () => send('PATCH', '/v1/people/ada', { first_name: 'after' }))
    for (const reply of await Promise.all(patches)) expectTimedOut(reply)
    expect(await readActive()).toEqual([])
    await lock.release()
    // There are as many people as writes, because writes of one person take a round each, and a busy machine has too
    // little time for all rounds.
    const replies = await Promise.all(
      Array.from({ length: 24 }, (_, index) => send('POST', '/v1/people', { external_id: `after-${index}` })),
    )
    expect(replies.map(({ status }) => status)).toEqual(new Array(24).fill(201))
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'before', version: 1 })
  })

  it('includes the wait for a database connection', async () => {
    let release = () => {}
    const released = new Promise<void>(resolve => {
      release = resolve
    })
    const taken = Array.from({ length: 8 }, () => service.db.transaction(async () => released))
    for (const reply of [await send('GET', '/v1/people/ada'), await send('PATCH', '/v1/people/ada', {})])
      expectTimedOut(reply)
    release()
    await Promise.allSettled(taken)
    expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  })

  it('includes the verification of the token', async () => {
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
    `POST /v1/people HTTP/1.1\r\nHost: kith\r\nAuthorization: Bearer ${shop.token}\r\nContent-Type: application/json\r\n`
  const whole = '{"external_id":"slow"}'

  it.each([
    ['half of its body', () => `${head()}Content-Length: ${whole.length}\r\n\r\n${whole.slice(0, 9)}`],
    ['no body at all', () => `${head()}Content-Length: ${whole.length}\r\n\r\n`],
    ['a chunk without an end', () => `${head()}Transfer-Encoding: chunked\r\n\r\n9\r\n${whole.slice(0, 9)}\r\n`],
    ['half of its headers', () => head().slice(0, -20)],
  ])('with %s gets 504 and a closed connection', async (_, bytes) => {
    const socket = await openSocket(service.address)
    socket.write(bytes())
    const { status, body, head: received } = parseResponse(await text(socket))
    expect({ status, error: body.error }).toEqual({ status: 504, error: 'operation_failed' })
    expect(received.toLowerCase()).toContain('connection: close')
    expect((await send('GET', '/v1/people/slow')).status).toBe(404)
  })

  it('gets no more time by sending a few bytes from time to time', async () => {
    const socket = await openSocket(service.address)
    socket.write(`${head()}Content-Length: 1000\r\n\r\n`)
    const dripping = setInterval(() => socket.write(' '), 50)
    const answer = await text(socket)
    clearInterval(dripping)
    expect(parseResponse(answer).status).toBe(504)
  })
})

it('cancels a waiting read', async () => {
  const lock = await service.db.connect()
  await lock.query('begin; lock table entities')
  expectTimedOut(await send('GET', '/v1/people/ada'))
  await lock.end()
  expect((await send('GET', '/v1/people/ada')).status).toBe(200)
  expect(await service.db.query(statement('', 'select 1 as one'), [])).toEqual([{ one: 1 }])
})
