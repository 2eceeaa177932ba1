import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, lockPerson, senderTo } from '../support/process.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed, startLoad } from './load.ts'
import { sitThrough } from './outage.ts'
import { startOwnPostgres } from './own-postgres.ts'
import { lastFaults, tell } from './report.ts'
import { rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

afterEach(endProcesses)

const requestMs = 2_000
const lateMs = 1_000
const recoveredWithinMs = 5_000

describe('all connections of the pool in use', () => {
  it.each(rounds(5))('keeps nobody waiting past the time of a request, and passes: round %i', async round => {
    const database = await createTestDatabase()
    const limits = { KITH_LIMIT_REQUEST_MS: String(requestMs), KITH_DATABASE_CONNECTIONS: '2' }
    const kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...limits })
    const address = await kith.ready
    const holders = [await makeWorld(database.url, address), await makeWorld(database.url, address)]
    const world = await makeWorld(database.url, address)
    const holding = holders.map(({ token }) => senderTo(address, token))
    for (const [index, send] of holding.entries()) await send('POST', '/v1/people', { external_id: `held ${index}` })
    const locks = [await lockPerson(database.url, 'held 0'), await lockPerson(database.url, 'held 1')]
    const patch = () => holding.map((send, index) => send('PATCH', `/v1/people/held ${index}`, { first_name: 'x' }))
    const held = patch()
    await expect.poll(locks[0]!.waiting).toBe(2)
    let slowestMs = 0
    const load = startLoad({
      world,
      addresses: [address],
      words: ['pool', round],
      onAnswer: entry => {
        slowestMs = Math.max(slowestMs, entry.finished - entry.started)
      },
    })
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([504, 504])
    const freed = performance.now()
    const again = patch()
    await expect.poll(locks[0]!.waiting).toBe(2)
    for (const lock of locks) await lock.release()
    const released = performance.now()
    expect((await Promise.all(again)).map(({ status }) => status)).toEqual([200, 200])
    await load.acknowledged(50)
    const recoveryMs = performance.now() - released
    await load.stop()
    await settleKeyed({ journal: load.journal, world, address })
    const waited = load.journal.entries.filter(({ started, finished }) => started < freed && finished > freed).length
    tell('pool exhausted', round, { waited, slowest_ms: slowestMs, recoveryMs }, load.journal)
    expect(linesOf(await check(world, load.journal, address)), lastFaults(kith)).toEqual([])
    expect(waited).toBeGreaterThan(0)
    expect(slowestMs).toBeLessThan(requestMs + lateMs)
    expect(recoveryMs).toBeLessThan(recoveredWithinMs)
    await endProcesses()
    await database.drop()
  })
})

describe('no connection left on the database server', () => {
  it.each(rounds(5))('is 503 until there is one: round %i', async round => {
    const postgres = await startOwnPostgres({ max_connections: '20' })
    const kith = launch({ DATABASE_URL: postgres.url, LOG_LEVEL: 'warn' })
    const address = await kith.ready
    const world = await makeWorld(postgres.url, address)
    const taken: pg.Client[] = []
    const begin = async () => {
      const first = await takeConnection(postgres.url)
      taken.push(first!)
      const endAll = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'kith'`
      while ((await first!.query(endAll)).rowCount! > 0)
        for (let client = await takeConnection(postgres.url); client; client = await takeConnection(postgres.url))
          taken.push(client)
    }
    const end = async () => {
      for (const client of taken.splice(0)) await client.end()
    }
    const { seen, journal } = await sitThrough({ world, address, words: ['full', round], begin, end, lastsMs: 1_000 })
    await settleKeyed({ journal, world, address })
    tell('no connection left', round, seen, journal)
    expect(linesOf(await check(world, journal, address)), lastFaults(kith)).toEqual([])
    expect(seen.others).toEqual([])
    expect(seen.refused).toBeGreaterThan(0)
    expect(seen.withoutRetryAfter).toBe(0)
    expect(seen.slowestAnswerMs).toBeLessThan(3_000)
    expect(seen.recoveryMs).toBeLessThan(recoveredWithinMs)
    await postgres.stop()
  })
})

/** A connection, or nothing where none is left. */
async function takeConnection(url: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  return client.connect().then(
    () => client,
    () => undefined,
  )
}
