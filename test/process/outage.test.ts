import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, lockPerson, senderTo, tokenFrom } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let line: Line

beforeEach(async () => {
  database = await createTestDatabase()
  line = await openLine(database.url)
})

afterEach(async () => {
  await endProcesses()
  line.cut()
  await database.drop()
})

/** The way to a database server, to be cut, mended and held. */
type Line = {
  url: string
  /** Ends all connections and lets nobody in. */
  cut(): void
  mend(): Promise<void>
  /** Nothing passes any more in either direction, and nobody is told. */
  hold(): void
  /** What was held passes. */
  release(): void
}

async function openLine(url: string): Promise<Line> {
  const ends = new Set<Socket>()
  let held = false
  const server: Server = createServer({ pauseOnConnect: true }, near => {
    const far = connect(targetOf(url))
    for (const end of [near, far]) {
      ends.add(end)
      end.on('error', () => {}).on('close', () => [near, far].map(each => each.destroy()))
    }
    near.pipe(far)
    far.pipe(near)
    if (held) for (const end of [near, far]) end.pause()
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = server.address() as { port: number }
  const pass = (stop: boolean) => {
    held = stop
    for (const end of ends) stop ? end.pause() : end.resume()
  }
  return {
    url: throughPort(url, port),
    cut: () => {
      server.close()
      for (const end of ends) end.destroy()
      ends.clear()
    },
    mend: () => listen(port),
    hold: () => pass(true),
    release: () => pass(false),
  }
}

function targetOf(url: string) {
  const { searchParams, hostname, port } = new URL(url)
  const socketDir = searchParams.get('host')
  const number = Number(port || 5432)
  return socketDir ? { path: `${socketDir}/.s.PGSQL.${number}` } : { host: hostname, port: number }
}

function throughPort(url: string, port: number): string {
  const through = new URL(url)
  through.searchParams.delete('host')
  through.hostname = '127.0.0.1'
  through.port = String(port)
  return through.href
}

async function serve(settings: Record<string, string> = {}): Promise<{ kith: Kith; address: string; send: Send }> {
  const kith = launch({ DATABASE_URL: line.url, ...settings })
  const address = await kith.ready
  const send = senderTo(address, await tokenFrom({ DATABASE_URL: database.url }))
  expect((await send('POST', '/v1/people', { external_id: 'ada' })).status).toBe(201)
  return { kith, address, send }
}

const patch = (send: Send, first_name: string) => send('PATCH', '/v1/people/ada', { first_name })

function expectAway({ status, headers, body }: Reply) {
  expect({ status, error: body.error }).toEqual({ status: 503, error: 'operation_failed' })
  expect(headers.get('Retry-After')).toMatch(/^\d+$/)
  expect(body.errorstack).toEqual({ reason: body.message, request_id: headers.get('X-Request-Id') })
  expect(JSON.stringify(body)).not.toMatch(/postgres|kith_test|127\.0\.0\.1|ECONN|stack":"/)
}

/** The service answers again, is the same process, and what it stores is there. */
async function expectRecovered({ kith, address, send }: Awaited<ReturnType<typeof serve>>) {
  await expect.poll(async () => (await fetch(`${address}/readyz`)).status, { timeout: 10_000 }).toBe(200)
  expect(await patch(send, 'Grace')).toMatchObject({ status: 200, body: { data: true } })
  expect((await send('GET', '/v1/people/ada')).body.data.first_name).toBe('Grace')
  expect(kith.child.exitCode).toBeNull()
}

const others = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`

/** Every COMMIT of a change waits for this lock. */
const holdCommits = `
  create function wait_for_test() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(4242); return null; end';
  create constraint trigger hold after insert on changes deferrable initially deferred
    for each row execute function wait_for_test()`

describe('a database that goes away', () => {
  it('and cuts idle connections goes unnoticed by the next requests', async () => {
    const service = await serve()
    const cut = await query(database.url, `select pg_terminate_backend(pid) ${others}`)
    expect(cut.length).toBeGreaterThan(0)
    await expectRecovered(service)
  })

  it('in the middle of a statement is 503, and nothing of the write is there', async () => {
    const service = await serve()
    const lock = await lockPerson(database.url, 'ada')
    const answer = patch(service.send, 'Ada')
    await expect.poll(lock.waiting).toBe(1)
    expect(await lock.endWaiting()).toBe(1)
    expectAway(await answer)
    await lock.release()
    expect((await service.send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: null, version: 1 })
    await expectRecovered(service)
  })

  it('in the middle of a batch is 503 for what it was lost under, and what was done says so', async () => {
    const service = await serve()
    const lock = await lockPerson(database.url, 'ada')
    const operations = [
      { op: 'create', external_id: 'bob', body: {} },
      { op: 'patch', external_id: 'ada', body: { first_name: 'Ada' } },
    ]
    const answer = service.send('POST', '/v1/people/batch', { operations })
    // By then the two have been parted, since one of them waits.
    await expect.poll(() => query(database.url, `select from entities where external_id = 'bob'`)).toHaveLength(1)
    await expect.poll(lock.waiting).toBe(1)
    await lock.endWaiting()
    const { body } = await answer
    expect(body.data.items.map(({ status }: { status: number }) => status)).toEqual([201, 503])
    await lock.release()
    await expectRecovered(service)
  })

  it('while a write is being committed says that it may have been done', async () => {
    const service = await serve()
    await query(database.url, holdCommits)
    const holder = new pg.Client({ connectionString: database.url })
    await holder.connect()
    await holder.query('select pg_advisory_lock(4242)')
    const answer = patch(service.send, 'Ada')
    await expect.poll(() => query(database.url, `select ${others} and wait_event_type = 'Lock'`)).toHaveLength(1)
    line.cut()
    await line.mend()
    const reply = await answer
    expectAway(reply)
    expect(reply.body.message).toMatch(/may have been done/)
    await holder.end()
    await expect.poll(async () => (await service.send('GET', '/v1/people/ada')).body.data?.first_name).toBe('Ada')
    await expectRecovered(service)
  })

  it('with its whole server is 503 for every request, /readyz included, until it is back', async () => {
    const service = await serve()
    line.cut()
    expectAway(await patch(service.send, 'Ada'))
    expectAway(await service.send('GET', '/v1/people/ada'))
    expectAway(await service.send('POST', '/v1/people', { external_id: 'grace' }))
    expectAway(await service.send('GET', '/readyz'))
    expect((await service.send('GET', '/healthz')).status).toBe(200)
    await line.mend()
    await expectRecovered(service)
  })

  it('because it was dropped, or renamed, is 503 until it is there again', async () => {
    const service = await serve()
    const name = new URL(database.url).pathname.slice(1)
    const server = urlOfDatabase(database.url, 'postgres')
    const rename = (from: string, to: string) => query(server, `alter database ${from} rename to ${to}`)
    await query(database.url, `select pg_terminate_backend(pid) ${others}`)
    await expect.poll(() => rename(name, `${name}_away`).then(Boolean, () => false)).toBe(true)
    expectAway(await patch(service.send, 'Ada'))
    expectAway(await service.send('GET', '/readyz'))
    await rename(`${name}_away`, name)
    await expectRecovered(service)
  })
})

describe('a database that falls silent', { timeout: 15_000 }, () => {
  it('while nothing runs is 504 after the time of the request, and recovers', async () => {
    const service = await serve({ KITH_LIMIT_REQUEST_MS: '500' })
    line.hold()
    expect(await patch(service.send, 'Ada')).toMatchObject({ status: 504, body: { error: 'operation_failed' } })
    line.release()
    await expectRecovered(service)
  })

  it('is 503 long before the time of a request is over, at once for those that come then, and recovers', async () => {
    const service = await serve({ KITH_LIMIT_REQUEST_MS: '600000' })
    line.hold()
    for (const answer of await Promise.all([patch(service.send, 'Ada'), service.send('GET', '/v1/people/ada')]))
      expectAway(answer)
    expectAway(await patch(service.send, 'Ada'))
    line.release()
    await expectRecovered(service)
  })

  it('for good is 504 for every request, and the process can be used again once the line is', async () => {
    const service = await serve({ KITH_LIMIT_REQUEST_MS: '500', KITH_DATABASE_CONNECTIONS: '2' })
    line.hold()
    const answers = await Promise.all([1, 2, 3].map(() => patch(service.send, 'Ada')))
    for (const { status, body } of answers) {
      expect([503, 504]).toContain(status)
      expect(body.error).toBe('operation_failed')
    }
    line.cut()
    await line.mend()
    line.release()
    await expectRecovered(service)
  })
})
