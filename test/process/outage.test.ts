import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { createTestDatabase } from '../support/database.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, lockPerson, senderTo, terminate, tokenFrom } from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let proxy: DatabaseProxy

beforeAll(async () => {
  database = await createTestDatabase()
  proxy = await startProxy(database.url)
})

afterAll(async () => {
  await endProcesses()
  proxy.cut()
  await database.drop()
})

/** A TCP proxy in front of a database server. A test can cut, restore and freeze it. */
type DatabaseProxy = {
  url: string
  /** Closes all connections and refuses new ones. */
  cut(): void
  restore(): Promise<void>
  /** Stops forwarding in both directions while all connections stay open. */
  freeze(): void
  /** Forwards again, including the bytes that arrived meanwhile. */
  unfreeze(): void
}

async function startProxy(url: string): Promise<DatabaseProxy> {
  const sockets = new Set<Socket>()
  let isFrozen = false
  const server: Server = createServer({ pauseOnConnect: true }, clientSocket => {
    const serverSocket = connect(targetOf(url))
    for (const end of [clientSocket, serverSocket]) {
      sockets.add(end)
      end.on('error', () => {}).on('close', () => [clientSocket, serverSocket].map(each => each.destroy()))
    }
    clientSocket.pipe(serverSocket)
    serverSocket.pipe(clientSocket)
    if (isFrozen) for (const end of [clientSocket, serverSocket]) end.pause()
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = server.address() as { port: number }
  const setFrozen = (stop: boolean) => {
    isFrozen = stop
    for (const end of sockets) stop ? end.pause() : end.resume()
  }
  return {
    url: withPort(url, port),
    cut: () => {
      server.close()
      for (const end of sockets) end.destroy()
      sockets.clear()
    },
    restore: () => listen(port),
    freeze: () => setFrozen(true),
    unfreeze: () => setFrozen(false),
  }
}

function targetOf(url: string) {
  const { searchParams, hostname, port } = new URL(url)
  const socketDir = searchParams.get('host')
  const number = Number(port || 5432)
  return socketDir ? { path: `${socketDir}/.s.PGSQL.${number}` } : { host: hostname, port: number }
}

function withPort(url: string, port: number): string {
  const portUrl = new URL(url)
  portUrl.searchParams.delete('host')
  portUrl.hostname = '127.0.0.1'
  portUrl.port = String(port)
  return portUrl.href
}

async function serve(settings: Record<string, string> = {}): Promise<{ kith: Kith; address: string; send: Send }> {
  const kith = launch({ DATABASE_URL: proxy.url, ...settings })
  const address = await kith.ready
  const send = senderTo(address, await tokenFrom({ DATABASE_URL: database.url }))
  expect((await send('POST', '/v1/people/upsert', { external_id: 'ada' })).status).toBeLessThan(300)
  return { kith, address, send }
}

const patch = (send: Send, first_name: string) => send('PATCH', '/v1/people/ada', { first_name })

function expectUnavailable({ status, headers, body }: Reply) {
  expect({ status, error: body.error }).toEqual({ status: 503, error: 'operation_failed' })
  expect(headers.get('Retry-After')).toMatch(/^\d+$/)
  expect(body.errorstack).toEqual({ reason: body.message, request_id: headers.get('X-Request-Id') })
  expect(JSON.stringify(body)).not.toMatch(/postgres|kith_test|127\.0\.0\.1|ECONN|stack":"/)
}

let recoveries = 0

/** Asserts that the same process is ready again, and that it stores and reads a write. */
async function expectRecovered({ kith, address, send }: Awaited<ReturnType<typeof serve>>) {
  await expect.poll(async () => (await fetch(`${address}/readyz`)).status, { timeout: 10_000 }).toBe(200)
  const name = `Grace ${++recoveries}`
  expect(await patch(send, name)).toMatchObject({ status: 200, body: { data: true } })
  expect((await send('GET', '/v1/people/ada')).body.data.first_name).toBe(name)
  expect(kith.child.exitCode).toBeNull()
}

const otherConnectionsSql = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`

/** Makes every COMMIT of a change wait for an advisory lock. */
const blockCommitsSql = `
  create function wait_for_test() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock_shared(4242); return null; end';
  create constraint trigger hold after insert on changes deferrable initially deferred
    for each row execute function wait_for_test()`

describe('a lost database connection', () => {
  let service: Awaited<ReturnType<typeof serve>>
  beforeAll(async () => {
    service = await serve()
  })
  afterAll(endProcesses)

  it('does not affect the next requests if it was idle', async () => {
    const cut = await query(database.url, `select pg_terminate_backend(pid) ${otherConnectionsSql}`)
    expect(cut.length).toBeGreaterThan(0)
    await expectRecovered(service)
  })

  it('returns 503 and stores nothing of a write if a statement was running', async () => {
    const before = (await service.send('GET', '/v1/people/ada')).body.data
    const lock = await lockPerson(database.url, 'ada')
    const answer = patch(service.send, 'Ada')
    await expect.poll(lock.waiting).toBe(1)
    expect(await lock.terminateWaiting()).toBe(1)
    expectUnavailable(await answer)
    await lock.release()
    expect((await service.send('GET', '/v1/people/ada')).body.data).toEqual(before)
    await expectRecovered(service)
  })

  it('returns 503 for the interrupted items of a batch and 201 for those that are stored', async () => {
    const lock = await lockPerson(database.url, 'ada')
    // The operations are too large for one set. The last one is in the last set, which waits for the lock.
    const operations: object[] = Array.from({ length: 256 }, (_, n) => ({
      op: 'create',
      external_id: `b${n}`,
      body: { attribute_values: { note: 'n'.repeat(2_000) } },
    }))
    operations.push({ op: 'patch', external_id: 'ada', body: { first_name: 'Ada' } })
    const answer = service.send('POST', '/v1/people/batch', { operations })
    await expect.poll(lock.waiting).toBe(1)
    await lock.terminateWaiting()
    const { body } = await answer
    const statuses: number[] = body.data.items.map(({ status }: { status: number }) => status)
    const stored = statuses.indexOf(503)
    expect(stored).toBeGreaterThan(0)
    expect(statuses).toEqual([...Array(stored).fill(201), ...Array(257 - stored).fill(503)])
    await lock.release()
    expect((await service.send('GET', `/v1/people/b${stored - 1}`)).status).toBe(200)
    await expectRecovered(service)
  })

  it('returns 503 with an unknown outcome if a write was being committed', async () => {
    await query(database.url, blockCommitsSql)
    const holder = new pg.Client({ connectionString: database.url })
    await holder.connect()
    await holder.query('select pg_advisory_lock(4242)')
    const answer = patch(service.send, 'Ada')
    await expect
      .poll(() => query(database.url, `select ${otherConnectionsSql} and wait_event_type = 'Lock'`))
      .toHaveLength(1)
    proxy.cut()
    await proxy.restore()
    const reply = await answer
    expectUnavailable(reply)
    expect(reply.body.message).toMatch(/may have been done/)
    await holder.end()
    await expect.poll(async () => (await service.send('GET', '/v1/people/ada')).body.data?.first_name).toBe('Ada')
    await query(database.url, 'drop trigger hold on changes; drop function wait_for_test')
    await expectRecovered(service)
  })

  it('returns 503 for every request, /readyz included, until a stopped server is back', async () => {
    proxy.cut()
    expectUnavailable(await patch(service.send, 'Ada'))
    expectUnavailable(await service.send('GET', '/v1/people/ada'))
    expectUnavailable(await service.send('POST', '/v1/people', { external_id: 'grace' }))
    expectUnavailable(await service.send('GET', '/readyz'))
    expect((await service.send('GET', '/healthz')).status).toBe(200)
    await proxy.restore()
    await expectRecovered(service)
  })

  it('returns 503 until a renamed database has its name again', async () => {
    const name = new URL(database.url).pathname.slice(1)
    const server = urlOfDatabase(database.url, 'postgres')
    const rename = (from: string, to: string) => query(server, `alter database ${from} rename to ${to}`)
    const allow = (database: string, connections: boolean) =>
      query(server, `alter database ${database} allow_connections ${connections}`)
    // A database with connections cannot be renamed, and the service connects again at once.
    await allow(name, false)
    await query(server, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
    await expect.poll(() => rename(name, `${name}_away`).then(Boolean, () => false)).toBe(true)
    await allow(`${name}_away`, true)
    expectUnavailable(await patch(service.send, 'Ada'))
    expectUnavailable(await service.send('GET', '/readyz'))
    await rename(`${name}_away`, name)
    await expectRecovered(service)
  })
})

describe('a frozen database', { timeout: 15_000 }, () => {
  afterEach(async () => {
    proxy.unfreeze()
    await endProcesses()
  })

  it('returns 504 at the request deadline, and recovers', async () => {
    const service = await serve({ KITH_LIMIT_REQUEST_MS: '500' })
    proxy.freeze()
    expect(await patch(service.send, 'Ada')).toMatchObject({ status: 504, body: { error: 'operation_failed' } })
    proxy.unfreeze()
    await expectRecovered(service)
  })

  it('returns 503 long before the deadline, then 503 at once for new requests, and recovers', async () => {
    const service = await serve({ KITH_LIMIT_REQUEST_MS: '600000' })
    proxy.freeze()
    for (const answer of await Promise.all([patch(service.send, 'Ada'), service.send('GET', '/v1/people/ada')]))
      expectUnavailable(answer)
    expectUnavailable(await patch(service.send, 'Ada'))
    proxy.unfreeze()
    await expectRecovered(service)
  })

  it('returns 503 or 504 while all connections are blocked, and recovers once it is reachable', async () => {
    const service = await serve({ KITH_LIMIT_REQUEST_MS: '500', KITH_DATABASE_CONNECTIONS: '2' })
    proxy.freeze()
    const answers = await Promise.all([1, 2, 3].map(() => patch(service.send, 'Ada')))
    for (const { status, body } of answers) {
      expect([503, 504]).toContain(status)
      expect(body.error).toBe('operation_failed')
    }
    proxy.cut()
    await proxy.restore()
    proxy.unfreeze()
    await expectRecovered(service)
  })
})

describe('a start without its database', () => {
  beforeEach(() => proxy.cut())
  afterEach(endProcesses)

  /** The address at which a process that waits answers. */
  async function waitingAt({ output }: Kith): Promise<string> {
    const line = await vi.waitUntil(() => /.*kith waits for it.*\n/.exec(output.stdout)?.[0], { timeout: 10_000 })
    const { msg, address } = JSON.parse(line)
    expect(msg).toMatch(
      /^No PostgreSQL responds at 127\.0\.0\.1:\d+ \(ECONNREFUSED\)\. Check DATABASE_URL\. kith waits for it\.$/,
    )
    return address
  }

  it.each([['one process'], ['two workers', '--workers', '2']])(
    'of %s is alive and not ready, and becomes ready when the database answers',
    async (_, ...words) => {
      const kith = launch({ DATABASE_URL: proxy.url }, ['serve', ...words])
      const address = await waitingAt(kith)
      const health = await fetch(`${address}/healthz`)
      expect([health.status, ((await health.json()) as { data: { healthy: boolean } }).data.healthy]).toEqual([
        200,
        true,
      ])
      for (const path of ['/readyz', '/v1/people', '/console/']) {
        const response = await fetch(address + path, { headers: { 'X-Request-Id': 'early' } })
        expectUnavailable({ status: response.status, headers: response.headers, body: await response.json() } as Reply)
        expect(response.headers.get('X-Request-Id')).toBe('early')
      }
      await proxy.restore()
      const ready = await kith.ready
      expect((await fetch(`${ready}/readyz`)).status).toBe(200)
      expect(await terminate(kith)).toBe(0)
    },
  )

  it('ends with the reason once KITH_DATABASE_WAIT_SECONDS have passed', async () => {
    const kith = launch({ DATABASE_URL: proxy.url, KITH_DATABASE_WAIT_SECONDS: '0' })
    expect(await kith.ended).toBe(1)
    expect(kith.output.stderr).toMatch(/No PostgreSQL responds at .* Check DATABASE_URL\.$/m)
    expect(kith.output.stdout).not.toContain('kith waits')
  })

  it('ends at a signal', async () => {
    const kith = launch({ DATABASE_URL: proxy.url })
    await waitingAt(kith)
    expect(await terminate(kith)).toBe(0)
  })

  it('does not wait if the login is rejected', async () => {
    await proxy.restore()
    const url = new URL(proxy.url)
    url.password = 'wrong'
    const kith = launch({ DATABASE_URL: url.href })
    expect(await kith.ended).toBe(1)
    expect(kith.output.stderr).toContain('rejects the login')
  })
})
