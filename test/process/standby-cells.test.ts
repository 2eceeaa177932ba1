import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { moveOrganization } from '../../src/cells/move/move.ts'
import { openDatabase } from '../../src/db/db.ts'
import { migrate } from '../../src/db/migrate.ts'
import { findOrganization } from '../../src/organizations/organizations.ts'
import { type OwnPostgres, startOwnPostgres, startStandby } from '../faults/own-postgres.ts'
import { query, until } from '../support/embedded-service.ts'
import { readMetrics } from '../support/metrics.ts'
import { endProcesses, launch, senderTo } from '../support/process.ts'
import { type Organization, startService } from '../support/service.ts'

// Two cells on one server, and their standbys on another one.
let primary: OwnPostgres
let standby: OwnPostgres
const cells = ['main', 'b'] as const
type Cell = (typeof cells)[number]
const organizations = {} as Record<'in main' | 'in b' | 'moving', Organization>
let primaries: Record<string, string>
/** A process with both standbys. */
let both: string

const databaseOf = ({ url }: OwnPostgres, cell: Cell) => {
  const own = new URL(url)
  if (cell === 'b') own.pathname = '/b'
  return own.href
}

beforeAll(async () => {
  primary = await startOwnPostgres()
  await migrate(primary.url)
  await query(primary.url, 'create database b')
  primaries = { DATABASE_URL: primary.url, KITH_CELLS: `b=${databaseOf(primary, 'b')}` }
  const service = await startService(primaries, primary.url)
  organizations['in main'] = await service.organization('first')
  organizations['in b'] = await service.organization('second', 'b')
  organizations.moving = await service.organization('third', 'b')
  for (const { client } of Object.values(organizations))
    await client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await service.stop()
  standby = await startStandby(primary)
  both = await start({ KITH_CELL_READ_URLS: `b=${databaseOf(standby, 'b')}` })
})

afterAll(async () => {
  await standby?.stop()
  await primary?.stop()
  await endProcesses()
})

// A test that fails must not leave the standby paused for the next ones.
afterEach(() => resumeReplay())

const start = async (environment: Record<string, string>) =>
  launch({ ...primaries, DATABASE_READ_URL: standby.url, ...environment }).ready
const pauseReplay = () => query(standby.url, 'select pg_wal_replay_pause()')
const resumeReplay = () => query(standby.url, 'select pg_wal_replay_resume()')

const sendTo = (address: string, { token }: Organization) => senderTo(address, token)

/** Changes the name, and returns the header that makes a read show it. */
async function rename(organization: Organization, first_name: string, address = both) {
  const { status, headers } = await sendTo(address, organization)('PATCH', '/v1/people/ada', { first_name })
  expect(status).toBe(200)
  return { 'If-Sequence': headers.get('X-Kith-Sequence')! }
}

async function listedName(organization: Organization, headers?: Record<string, string>, address = both) {
  const { status, body } = await sendTo(address, organization)('POST', '/v1/people/list', {}, headers)
  return status === 200 ? body.data.items[0]?.first_name : status
}

async function nameOf(organization: Organization, address = both) {
  const { body } = await sendTo(address, organization)('GET', '/v1/people/ada')
  return body.data.first_name
}

const readinessOf = async (address: string) => {
  const response = await fetch(`${address}/readyz`)
  return ((await response.json()) as { data: { reader: string; cells: Record<string, string> } }).data
}

describe('a process with cells and their standbys', () => {
  it.each(['in main', 'in b'] as const)(
    'reads lists of an organization %s from the standby of its cell',
    async where => {
      const organization = organizations[where]
      await until(async () => (await readinessOf(both)).reader === 'ready')
      expect(await readinessOf(both)).toMatchObject({ reader: 'ready', cells: { main: 'ready', b: 'ready' } })
      await pauseReplay()
      const headers = await rename(organization, 'Grace')
      expect([await nameOf(organization), await listedName(organization)]).toEqual(['Grace', 'Ada'])
      expect(await listedName(organization, headers)).toBe('Grace')
      const reading = listedName(organization, await rename(organization, 'Joan'))
      await resumeReplay()
      expect(await reading).toBe('Joan')
      const metrics = await readMetrics(both)
      expect(metrics.value('kith_reader_fallbacks_total{reason="sequence"}')).toBeGreaterThan(0)
      expect(metrics.value('kith_reader_up')).toBe(1)
      expect(metrics.text).toMatch(/kith_db_pool_connections\{[^}]*pool="reader b"/)
    },
  )

  it('reads an organization that has moved from the primary, until the standby of its new cell shows it', async () => {
    const organization = organizations.moving
    const open = (cell: Cell) => openDatabase(databaseOf(primary, cell), { connections: 2, statementTimeoutMs: 10_000 })
    const pools = { main: open('main'), b: open('b') }
    const moveTo = async (to: Cell) => {
      const found = (await findOrganization(pools.main, organization.key))!
      const cellOf = (name: Cell) => ({ name, db: pools[name] })
      await moveOrganization(found, cellOf(found.cell as Cell), cellOf(to), {
        first: pools.main,
        // No process has looked for the organization yet.
        cacheMs: 0,
        signal: new AbortController().signal,
        report: () => {},
      })
    }
    try {
      await until(async () => (await readinessOf(both)).reader === 'ready')
      await pauseReplay()
      await moveTo('main')
      expect(await listedName(organization)).toBe('Ada')
      await rename(organization, 'Mary')
      expect(await listedName(organization)).toBe('Mary')
      await resumeReplay()
      await until(async () => (await listedName(organization)) === 'Mary')
      await until(async () => (await readinessOf(both)).reader === 'ready')
      // The number of the organization that the process has seen is looked up again after a second.
      await until(async () => {
        await pauseReplay()
        await rename(organization, 'Hedy')
        const isFromStandby = (await listedName(organization)) === 'Mary'
        await rename(organization, 'Mary')
        await resumeReplay()
        return isFromStandby
      })
    } finally {
      await pools.main.close()
      await pools.b.close()
    }
  })

  it('reads lists from the primary where a cell has no standby', async () => {
    const address = await start({})
    await until(async () => (await readinessOf(address)).reader === 'ready')
    await pauseReplay()
    for (const [where, expected] of [
      ['in main', 'Joan'],
      ['in b', 'Emmy'],
    ] as const) {
      await rename(organizations[where], 'Emmy', address)
      expect([where, await listedName(organizations[where], undefined, address)]).toEqual([where, expected])
    }
  })

  it('does not use a standby of another cell, and says so', async () => {
    const address = await start({ KITH_CELL_READ_URLS: `b=${standby.url}` })
    await until(async () => (await readinessOf(address)).reader === 'cell')
    await pauseReplay()
    await rename(organizations['in b'], 'Lise', address)
    expect(await listedName(organizations['in b'], undefined, address)).toBe('Lise')
    const metrics = await readMetrics(address)
    expect(metrics.value('kith_reader_fallbacks_total{reason="cell"}')).toBeGreaterThan(0)
    expect(metrics.value('kith_reader_up')).toBe(0)
  })
})
