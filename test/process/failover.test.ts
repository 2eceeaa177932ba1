import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase, statement } from '../../src/db/db.ts'
import { migrate } from '../../src/db/migrate.ts'
import { isUnavailable } from '../../src/db/pg-errors.ts'
import { probe } from '../../src/db/servers/probe.ts'
import type { Finding } from '../../src/operations/doctor/finding.ts'
import { type OwnPostgres, startOwnPostgres, startStandby, urlOfServers } from '../faults/own-postgres.ts'
import { runInProcess } from '../support/command.ts'
import { query, until } from '../support/embedded-service.ts'
import { endProcesses, makeFolder } from '../support/process.ts'
import { type Organization, type Service, startService } from '../support/service.ts'

const isStandbySql = statement('', 'select pg_is_in_recovery() as is_standby')
const pidSql = statement('', 'select pg_backend_pid() as pid')

let primary: OwnPostgres
let standby: OwnPostgres
/** A service on both servers. Its URL names the standby first. */
let service: Service
let organization: Organization

beforeAll(async () => {
  primary = await startOwnPostgres()
  await migrate(primary.url)
  standby = await startStandby(primary)
  service = await startService({}, urlOfServers(standby, primary))
  organization = await service.organization()
})
afterAll(async () => {
  await service?.stop()
  await primary?.stop()
  await standby?.stop()
  await endProcesses()
})

const write = (external_id: string) => organization.send('POST', '/v1/people', { external_id })
const writesAgain = (external_id: string) => until(async () => [201, 400].includes((await write(external_id)).status))

async function expectUnavailable(external_id: string) {
  const { status, headers, body } = await write(external_id)
  expect([status, headers.get('Retry-After')]).toEqual([503, '1'])
  expect(body.message).toMatch(/read-only|cannot be reached/)
  expect(JSON.stringify(body)).not.toContain(primary.path)
}

const has = async ({ url }: OwnPostgres, external_id: string) =>
  (await query(url, `select from entities where external_id = '${external_id}'`)).length === 1

/** Opens both servers with this `target_session_attrs`, and runs `work`. */
async function withServers<T>(
  attributes: string,
  work: (db: ReturnType<typeof openDatabase>) => Promise<T>,
  servers = [primary, standby],
): Promise<T> {
  const url = new URL(urlOfServers(...servers))
  url.searchParams.set('target_session_attrs', attributes)
  const db = openDatabase(url.href, { connections: 2, statementTimeoutMs: 10_000 })
  return work(db).finally(db.close)
}

async function waitForReplay() {
  const [head] = await query(primary.url, 'select pg_current_wal_lsn() as lsn')
  const caughtUp = `select where pg_last_wal_replay_lsn() >= '${head?.lsn}'`
  await until(async () => (await query(standby.url, caughtUp)).length === 1)
}

describe('a URL of several hosts', () => {
  it('leads writes to the primary, wherever it stands in the list', async () => {
    expect((await write('ada')).status).toBe(201)
    expect(await has(primary, 'ada')).toBe(true)
    await expect(probe(service.databaseUrl)).resolves.toBeUndefined()
    expect(await migrate(service.databaseUrl)).toEqual([])
  })

  it.each([
    ['any', false],
    ['read-write', false],
    ['primary', false],
    ['standby', true],
    ['read-only', true],
    ['prefer-standby', true],
  ])('with target_session_attrs=%s leads to a standby: %s', async (attributes, is_standby) => {
    const rows = await withServers(attributes, db => db.query(isStandbySql, []))
    expect(rows).toEqual([{ is_standby }])
  })

  it('with target_session_attrs=read-write and one host refuses a standby', async () => {
    const error = await withServers('read-write', db => db.query(isStandbySql, []), [standby]).catch(error => error)
    expect(isUnavailable(error)).toBe(true)
    expect(error.message).toMatch(/may not be used: it is a standby/)
  })

  it('fails at the start with one sentence that names each host and why it cannot be used', async () => {
    const url = new URL(urlOfServers(standby))
    url.searchParams.set('host', `${url.searchParams.get('host')},${await makeFolder()}`)
    const error = await probe(url.href).catch(error => error)
    expect(error.message).toMatch(
      /^No host of the database is usable as read-write: \/.*5432 is a standby; \/.*5432 does not respond \(ENOENT\)\. Check DATABASE_URL\.$/,
    )
    url.password = 'zqpassword'
    const refused = await probe(url.href).catch(error => error)
    expect(refused.message).toMatch(/rejects the login of "kith"/)
    expect(refused.message).not.toContain('zqpassword')
  })

  it('is usable by a role without privileges', async () => {
    await query(primary.url, `create role plain login password 'plain'`)
    const url = new URL(service.databaseUrl)
    Object.assign(url, { username: 'plain', password: 'plain' })
    const db = openDatabase(url.href, { connections: 1, statementTimeoutMs: 10_000 })
    await until(() =>
      query(`${standby.url}`, `select from pg_roles where rolname = 'plain'`).then(rows => rows.length > 0),
    )
    expect(await db.query(isStandbySql, []).finally(db.close)).toEqual([{ is_standby: false }])
  })
})

it('kith doctor warns that a failover can lose acknowledged writes', async () => {
  const url = new URL(service.databaseUrl)
  url.searchParams.set('options', '-c synchronous_commit=local')
  const { stdout } = await runInProcess(['doctor', '--json'], { DATABASE_URL: url.href })
  const findings = (JSON.parse(stdout) as { findings: Finding[] }).findings.filter(
    ({ check }) => check === 'durability',
  )
  expect(findings.map(({ verdict, message }) => [verdict, message])).toEqual([
    ['warning', expect.stringMatching(/^synchronous_standby_names is empty, and one standby streams/)],
    ['warning', expect.stringMatching(/^synchronous_commit is local/)],
  ])
})

describe('a primary that is made read-only', () => {
  const setReadOnly = async (value: 'on' | 'off') => {
    await query(primary.url, `alter system set default_transaction_read_only = ${value}`)
    await query(primary.url, 'select pg_reload_conf()')
    const isSet = `select where current_setting('default_transaction_read_only') = '${value}'`
    await until(async () => (await query(primary.url, isSet)).length === 1)
  }

  it('gets no more writes on any connection, and they go on when it accepts them', async () => {
    const [{ pid }] = (await service.db.query(pidSql, [])) as [{ pid: number }]
    await setReadOnly('on')
    await expectUnavailable('fenced')
    await expectUnavailable('fenced')
    expect((await organization.send('GET', '/readyz')).status).toBe(503)
    expect(await query(primary.url, `select from pg_stat_activity where pid = ${pid}`)).toEqual([])
    await setReadOnly('off')
    await writesAgain('fenced')
    expect(await has(primary, 'fenced')).toBe(true)
  })
})

it('a refused write closes its connection, although the server has not reported that it is read-only', async () => {
  await withServers('read-write', async db => {
    const before = await db.query(pidSql, [])
    const work = db.transaction(async tx => {
      await tx.query(statement('', 'set transaction read only'), [])
      await tx.query(statement('', 'create table refused ()'), [])
    })
    await expect(work).rejects.toMatchObject({ code: '25006' })
    expect(await db.query(pidSql, [])).not.toEqual(before)
  })
})

describe('a failover to a standby that lacks the last writes', () => {
  it('writes to the new primary, and remembers no definition that it lacks', async () => {
    await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    await waitForReplay()
    await query(standby.url, `alter system set primary_conninfo = ''`)
    await query(standby.url, 'select pg_reload_conf()')
    await until(async () => (await query(primary.url, 'select from pg_stat_replication')).length === 0)
    expect((await organization.send('POST', '/v1/schema/stacks', { key: 'lost', kind: 'item' })).status).toBe(201)
    expect((await organization.send('POST', '/v1/stacks/lost', { external_id: 'lost' })).status).toBe(201)
    await primary.kill('all')
    await expectUnavailable('during')
    await query(standby.url, 'select pg_promote()')
    await writesAgain('after')
    expect(await has(standby, 'after')).toBe(true)
    // The version of the definitions that this stack makes is that of the lost one.
    expect((await organization.send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })).status).toBe(201)
    expect((await organization.send('POST', '/v1/stacks/visits', { external_id: 'visit' })).status).toBe(201)
    expect((await organization.send('POST', '/v1/stacks/lost', { external_id: 'lost' })).status).toBe(404)
    const stacks = (await organization.send('GET', '/v1/schema/stacks')).body.data
    expect(JSON.stringify(stacks)).toContain('visits')
    expect(JSON.stringify(stacks)).not.toContain('lost')
  })
})

describe('an old primary that comes back and accepts writes', () => {
  it('gets none, neither while the new one runs nor while it is down', async () => {
    await primary.start()
    expect((await write('beside')).status).toBe(201)
    await standby.stop()
    await expectUnavailable('refused')
    await until(async () => service.logs.some(line => line.includes('is on timeline 1, which ended when')))
    await standby.start()
    await writesAgain('resumed')
    for (const external_id of ['beside', 'refused', 'resumed']) expect(await has(primary, external_id)).toBe(false)
    expect(await has(standby, 'resumed')).toBe(true)
  })

  it('is not chosen by a process that starts and sees both', async () => {
    const timelineSql = statement('', 'select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline')
    expect(await withServers('read-write', db => db.query(timelineSql, []))).toEqual([{ timeline: '00000002' }])
  })
})
