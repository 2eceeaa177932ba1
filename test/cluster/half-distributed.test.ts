import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { planDistribution, readDistribution } from '../../src/db/distribution.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createOnServers, dropOnServers, readServers } from '../support/cluster-database.ts'
import { startCommand } from '../support/command.ts'
import { query } from '../support/embedded-service.ts'
import { endProcesses, launch, terminate } from '../support/process.ts'

describe('a database with Citus', () => {
  const name = `kith_test_${randomBytes(8).toString('hex')}`
  let servers: Awaited<ReturnType<typeof readServers>>
  let url: string
  beforeAll(async () => {
    servers = await readServers(process.env.KITH_CLUSTER_URL!)
    url = await createOnServers(servers, name)
    await migrate(url)
  })
  afterEach(endProcesses)
  afterAll(() => dropOnServers(servers, name))

  const kith = (...words: string[]) => startCommand(words, { DATABASE_URL: url }).ended

  /** Starts the service. Returns the warnings of its log and the status of a request to it. */
  async function start() {
    const service = launch({ DATABASE_URL: url, LOG_LEVEL: 'warn' })
    const { status } = await fetch(`${await service.ready}/readyz`)
    await terminate(service)
    const lines = service.output.stdout.split('\n').filter(line => line.includes('"level":40'))
    return { status, warnings: lines.map(line => JSON.parse(line).msg as string) }
  }

  /** Runs the statements that are left, up to the one of a table. */
  async function distributeUpTo(table: string) {
    const statements = await planned()
    const last = statements.findIndex(text => text.includes(`'${table}'`))
    for (const text of statements.slice(0, last + 1)) await query(url, text)
  }

  async function planned() {
    const queryable = { query: async (text: string) => ({ rows: await query(url, text) }) }
    const distribution = await readDistribution(queryable as never)
    return planDistribution(distribution!, name)
  }

  it.each([
    ['no table is distributed', async () => {}],
    ['these tables are not distributed: followers, idempotency_keys', () => distributeUpTo('fills')],
  ])('starts, warns, and gets the same from kith doctor, if %s', async (problem, prepare) => {
    await prepare()
    const { status, warnings } = await start()
    expect(status).toBe(200)
    // Further warnings are of background tasks, whose statements Citus refuses.
    expect(warnings[0]).toContain(`the database has Citus, and ${problem}`)
    expect(warnings[0]).toContain('stop the service, and run kith distribute')
    const { code, stdout } = await kith('doctor')
    expect([code, stdout]).toEqual([1, expect.stringContaining(`the database has Citus, and ${problem}`)])
  })

  it('is distributed by the rest of an interrupted kith distribute, and the start warns no more', async () => {
    const left = await planned()
    const { code, stdout } = await kith('distribute')
    expect([code, stdout.trim().split('\n')]).toEqual([0, left.map(text => `${text};`)])
    expect(await planned()).toEqual([])
    expect(await kith('distribute')).toMatchObject({ code: 0, stdout: '' })
    expect(await start()).toEqual({ status: 200, warnings: [] })
    expect((await kith('doctor')).stdout).toContain('Citus distributes every table')
  })
})
