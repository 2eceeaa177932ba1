import pg from 'pg'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { openDatabase, statement } from '../../src/db/db.ts'
import { migrate } from '../../src/db/migrate.ts'
import { readsOfReader } from '../../src/db/standby/reads.ts'
import { startReads } from '../../src/db/standby/start-reads.ts'
import { loadConfig } from '../../src/process/config.ts'
import { type OwnPostgres, startOwnPostgres, startStandby } from '../faults/own-postgres.ts'
import { sendAsPage } from '../support/browser-session.ts'
import { query, until } from '../support/embedded-service.ts'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, type Kith, launch, senderTo } from '../support/process.ts'
import { type Reply, type Send, startService } from '../support/service.ts'

let primary: OwnPostgres
let standby: OwnPostgres
let kith: Kith
let address: string
let send: Send
let authorization: string
let token: string
let credentials: { client_id: string; client_secret: string }

beforeAll(async () => {
  primary = await startOwnPostgres()
  await migrate(primary.url)
  const service = await startService({}, primary.url)
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  const clientOptions = { organizationKey: organization.key, name: 'a program', scope: 'people:read exports:read' }
  credentials = await createClient(service.db, clientOptions)
  await service.stop()
  standby = await startStandby(primary)
  kith = launch({ DATABASE_URL: standby.url })
  address = await kith.ready
  send = senderTo(address, organization.token)
  token = organization.token
  authorization = `Bearer ${token}`
})
afterAll(async () => {
  await standby?.stop()
  await primary?.stop()
  await endProcesses()
})

const patch = { first_name: 'Grace' }
const operations = [{ op: 'patch', external_id: 'ada', body: patch }]

type Write = [what: string, method: string, path: string, body?: unknown, headers?: Record<string, string>]
const writeRequests: Write[] = [
  ['a PATCH', 'PATCH', '/v1/people/ada', patch],
  ['a create', 'POST', '/v1/people', patch],
  ['a keyed create', 'POST', '/v1/people', patch, { 'Idempotency-Key': 'a-key' }],
  ['a deletion', 'DELETE', '/v1/people/ada'],
  ['a batch', 'POST', '/v1/people/batch', { operations }],
  ['an atomic batch', 'POST', '/v1/people/batch', { operations, atomic: true }],
  ['a new stack', 'POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }],
]

const sleepingSql = "select from pg_stat_activity where wait_event = 'PgSleep'"

const readOnly = {
  error: 'operation_failed',
  message: 'The database is read-only (a standby). It accepts no writes.',
}

const conflictWithRecovery = '40001'

describe('a service on a standby', () => {
  it('starts and answers reads', async () => {
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({ first_name: 'Ada' })
    expect((await send('POST', '/v1/people/list', {})).body.data.items).toHaveLength(1)
    const filter = { first_name: 'Ada' }
    expect((await send('POST', '/v1/people/filter', { filter })).body.data.items).toHaveLength(1)
    const exported = await fetch(`${address}/v1/people/export`, {
      method: 'POST',
      headers: { Authorization: authorization },
    })
    expect(JSON.parse(await exported.text())).toMatchObject({ external_id: 'ada' })
  })

  it.each(writeRequests)('returns 503 for %s', async (_, ...request) => {
    const { status, headers, body } = await send(...request)
    expect([status, headers.get('Retry-After')]).toEqual([503, '1'])
    expect(body).toMatchObject(readOnly)
    expect(body).not.toHaveProperty('outcome')
  })

  it('ends an import with the same error', async () => {
    const response = await fetch(`${address}/v1/people/import`, {
      method: 'POST',
      headers: { Authorization: authorization, 'Content-Type': 'application/x-ndjson' },
      body: '{"external_id":"ada"}\n',
    })
    expect(JSON.parse(await response.text())).toMatchObject(readOnly)
  })

  it('returns 503 for a token whose signing key would have to be extended', async () => {
    await query(primary.url, 'update signing_keys set vouches_until = now()')
    await until(
      async () => (await query(standby.url, 'select from signing_keys where vouches_until < now()')).length > 0,
    )
    const body = new URLSearchParams({ grant_type: 'client_credentials', ...credentials })
    const response = await fetch(`${address}/oauth/token`, { method: 'POST', body })
    expect([response.status, await response.json()]).toMatchObject([503, readOnly])
  })

  it('returns 503 at /readyz, since it takes no writes, and 200 at /healthz', async () => {
    const { status, headers, body } = await send('GET', '/readyz')
    expect([status, headers.get('Retry-After')]).toEqual([503, '1'])
    expect(body).toMatchObject(readOnly)
    expect((await send('GET', '/healthz')).status).toBe(200)
  })

  it('exits with 1 and tells to migrate the primary when the tables are missing', async () => {
    await query(primary.url, 'create database empty')
    const url = new URL(standby.url)
    url.pathname = '/empty'
    await until(() => query(url.href, 'select 1').then(Boolean, () => false))
    const other = launch({ DATABASE_URL: url.href })
    const reader = launch({ DATABASE_URL: url.href, KITH_ROLE: 'reader' })
    expect(await other.ended).toBe(1)
    expect(other.output.stderr).toMatch(/read-only.*Migrate the primary/)
    expect(await reader.ended).toBe(1)
    expect(reader.output.stderr).toMatch(/The standby lacks tables of kith.*Migrate the primary first/)
  })
})

describe('readers of a standby', () => {
  /** A process that only reads, with two workers, and one that writes to the primary and reads from both. */
  let reader: { kith: Kith; address: string; send: Send }
  let both: { kith: Kith; address: string; send: Send }

  beforeAll(async () => {
    const start = async (environment: Record<string, string>, words?: string[]) => {
      const started = launch({ KITH_READER_MAX_LAG_SECONDS: '1', ...environment }, words)
      const at = await started.ready
      return { kith: started, address: at, send: senderTo(at, token) }
    }
    ;[reader, both] = await Promise.all([
      start({ DATABASE_URL: standby.url, KITH_ROLE: 'reader' }, ['serve', '--workers', '2']),
      start({ DATABASE_URL: primary.url, DATABASE_READ_URL: standby.url }),
    ])
  })

  // A test that fails must not leave the standby paused for the next ones.
  afterEach(async () => {
    await standby.thaw()
    await resumeReplay()
  })
  const pauseReplay = () => query(standby.url, 'select pg_wal_replay_pause()')
  // The replay may cancel the query that resumed it, because of a conflict. The replay continues.
  const resumeReplay = () =>
    query(standby.url, 'select pg_wal_replay_resume()').catch(error => {
      if (error.code !== conflictWithRecovery) throw error
    })
  /** Changes the name on the primary, and returns the header that makes a read show it. */
  const rename = async (first_name: string) => {
    const { status, headers } = await both.send('PATCH', '/v1/people/ada', { first_name })
    expect(status).toBe(200)
    return { 'If-Sequence': headers.get('X-Kith-Sequence')! }
  }
  const nameOf = ({ status, body }: Reply) => (status === 200 ? body.data.first_name : status)
  const listedName = ({ status, body }: Reply) => (status === 200 ? body.data.items[0].first_name : status)
  const get = (on: { send: Send }, headers?: Record<string, string>) =>
    on.send('GET', '/v1/people/ada', undefined, headers)
  const list = (on: { send: Send }, headers?: Record<string, string>) => on.send('POST', '/v1/people/list', {}, headers)
  const isBehind = ({ status, body }: Reply) => status === 503 && body.message!.includes('further behind its primary')
  const conditionOfBoth = async () => (await both.send('GET', '/readyz')).body.data?.reader

  it('answer reads, tokens and readiness, and refuse every write before it reaches the database', async () => {
    await until(async () => (await reader.send('GET', '/readyz')).status === 200)
    expect(nameOf(await get(reader))).toBe('Ada')
    // The primary extends the key, and the reader signs with it.
    const grant = (at: string) =>
      fetch(`${at}/oauth/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'client_credentials', ...credentials }),
      })
    expect((await grant(both.address)).status).toBe(200)
    await until(async () => (await grant(reader.address)).status === 200)
    for (const [what, method, path, given, headers] of writeRequests) {
      const refused = await reader.send(method, path, given, headers)
      expect([what, refused.status, refused.headers.get('Retry-After')]).toEqual([what, 503, null])
      expect(refused.body.message).toBe(
        'This process only reads (KITH_ROLE=reader). Send writes to a process with the role primary.',
      )
    }
    expect(reader.kith.output.stdout).not.toMatch(/background task|"level":50/)
  })

  it('accept a session of the console, and start and end none', async () => {
    const [client_id, client_secret] = [credentials.client_id, credentials.client_secret]
    const signIn = (at: string) =>
      sendAsPage({ address: at }, 'POST', '/console/session', { body: { client_id, client_secret } })
    const { status, headers } = await signIn(both.address)
    expect(status).toBe(200)
    const cookie = headers.get('set-cookie')!.split(';')[0]!
    const onReader = (method: string, path: string) =>
      sendAsPage({ address: reader.address }, method, path, { headers: { cookie } })
    await until(async () => (await onReader('GET', '/console/session')).status === 200)
    expect((await onReader('GET', '/v1/people/ada')).status).toBe(200)
    const message = 'This process only reads (KITH_ROLE=reader). Sign in and out at a process with the role primary.'
    for (const refused of [await signIn(reader.address), await onReader('DELETE', '/console/session')])
      expect([refused.status, refused.body.message]).toEqual([503, message])
  })

  it('wait for the change that a read names', async () => {
    await pauseReplay()
    const headers = await rename('Grace')
    const reading = Array.from({ length: 40 }, (_, index) => (index % 2 ? get : list)(reader, headers))
    expect(nameOf(await get(reader))).toBe('Ada')
    await resumeReplay()
    const replies = await Promise.all(reading)
    expect(new Set(replies.map((reply, index) => (index % 2 ? nameOf : listedName)(reply)))).toEqual(new Set(['Grace']))
  })

  it('answer 503 for a change that does not arrive, where a process with both databases uses the primary', async () => {
    await pauseReplay()
    const headers = await rename('Joan')
    const late = await get(reader, headers)
    expect([late.status, late.headers.get('Retry-After')]).toEqual([503, '1'])
    expect(late.body.details![0]!.path).toBe('/If-Sequence')
    expect(nameOf(await get(both, headers))).toBe('Joan')
    expect(listedName(await list(both, headers))).toBe('Joan')
    // A position of the primary's log is not one of another log.
    const feed = await reader.send('GET', `/v1/changes?after=${headers['If-Sequence']}`)
    expect([feed.status, feed.body.details![0]!.path]).toEqual([503, '/after'])
    expect((await both.send('GET', `/v1/changes?after=${headers['If-Sequence']}`)).status).toBe(200)
    await resumeReplay()
    expect(nameOf(await get(reader, headers))).toBe('Joan')
  })

  it('answer single reads from the primary and lists from the standby, where a process has both', async () => {
    await until(async () => (await conditionOfBoth()) === 'ready')
    await pauseReplay()
    await rename('Mary')
    expect(nameOf(await get(both))).toBe('Mary')
    expect(listedName(await list(both))).toBe('Joan')
    await resumeReplay()
  })

  it('use the primary while the standby is too far behind, and a reader is not ready then', async () => {
    await until(async () => (await conditionOfBoth()) === 'ready')
    await pauseReplay()
    await rename('Hedy')
    await until(async () => (await conditionOfBoth()) === 'behind')
    expect(listedName(await list(both))).toBe('Hedy')
    // Each of the two workers looks by itself.
    await until(async () => isBehind(await reader.send('GET', '/readyz')))
    const metrics = await readMetrics(both.address)
    expect(metrics.value('kith_reader_up')).toBe(0)
    expect(metrics.value('kith_reader_lag_seconds')).toBeGreaterThan(1)
    expect(metrics.value('kith_reader_lag_bytes')).toBeGreaterThan(0)
    expect(metrics.value('kith_reader_fallbacks_total{reason="behind"}')).toBeGreaterThan(0)
    expect(both.kith.output.stdout.match(/further behind its primary[^"]*/g)?.length).toBeGreaterThan(0)
    await resumeReplay()
    await until(async () => (await conditionOfBoth()) === 'ready')
    await until(async () => (await reader.send('GET', '/readyz')).status === 200)
  })

  it('use the primary while the standby is frozen', async () => {
    await standby.freeze()
    const headers = await rename('Emmy')
    expect(listedName(await list(both, headers))).toBe('Emmy')
    await until(async () => (await conditionOfBoth()) === 'away')
    expect(listedName(await list(both))).toBe('Emmy')
    await until(async () => (await reader.send('GET', '/readyz')).status === 503)
    await standby.thaw()
    await until(async () => (await conditionOfBoth()) === 'ready')
    expect(nameOf(await get(reader, headers))).toBe('Emmy')
  })

  it('run a read again that the replay of the standby has cancelled', async () => {
    const db = openDatabase(standby.url, { connections: 2, statementTimeoutMs: 10_000 })
    const locking = new pg.Client({ connectionString: primary.url })
    await locking.connect()
    let attempts = 0
    try {
      const { run } = readsOfReader(db, { state: undefined as never, look: async () => undefined as never })
      const read = {
        organization_id: 1,
        sequence: undefined,
        prefersReader: true,
        signal: new AbortController().signal,
      }
      const rows = await run(read, async onStandby => {
        attempts += 1
        if (attempts > 1) return onStandby.query(statement('', 'select 1 as found from entities limit 1'), [])
        const sleeping = onStandby.query(statement('', 'select pg_sleep(5) from entities limit 1'), [])
        sleeping.catch(() => {})
        await until(async () => (await query(standby.url, sleepingSql)).length > 0)
        // The standby cancels the read, because it has to replay this lock.
        await locking.query('begin; lock table entities in access exclusive mode; commit')
        return sleeping
      })
      expect([rows.length, attempts]).toEqual([1, 2])
    } finally {
      await locking.end()
      await db.close()
    }
  })

  it('warn of a server for reads that is a primary, and use it', async () => {
    const lines: string[] = []
    const db = openDatabase(primary.url, { connections: 1, statementTimeoutMs: 10_000, isReadOnly: true })
    const config = { ...loadConfig({ DATABASE_URL: primary.url, KITH_ROLE: 'reader' }) }
    const logger = pino({}, { write: line => lines.push(line) })
    const started = await startReads({ db, config, readerObserver: {} as never, statementTimeoutMs: 10_000, logger })
    expect(started.reads.standby()).toMatchObject({ condition: 'ready', isPrimary: true, lagSeconds: 0 })
    expect(lines.join()).toMatch(/the server for reads is a primary, not a standby/)
    await expect(db.query(statement('', 'delete from entities'), [])).rejects.toThrow('read-only')
    await started.stop()
    await db.close()
  })
})

describe('a standby that is promoted', () => {
  it('takes writes once the standby is promoted, and has logged its state only once', async () => {
    await query(standby.url, 'select pg_promote()')
    await until(async () => (await send('GET', '/readyz')).status === 200)
    expect((await send('PATCH', '/v1/people/ada', patch)).status).toBe(200)
    const readOnlyLines = kith.output.stdout.split('\n').filter(line => line.includes('read-only'))
    expect(readOnlyLines).toHaveLength(1)
    expect(kith.output.stdout).not.toMatch(/"level":50|in the background failed/)
  })
})
