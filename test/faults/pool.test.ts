import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch, lockPerson, senderTo } from '../support/process.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes, startLoad } from './load.ts'
import { runOutage } from './outage.ts'
import { startOwnPostgres } from './own-postgres.ts'
import { lastErrors, printRound } from './report.ts'
import { rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

afterEach(endProcesses)

const requestMs = 2_000
const maxLatenessMs = 1_000
const maxRecoveryMs = 5_000

describe('an exhausted connection pool', () => {
  it.each(rounds(5))('ends every waiting request by its deadline, and recovers: round %i', async round => {
    const database = await createTestDatabase()
    const limits = { KITH_LIMIT_REQUEST_MS: String(requestMs), KITH_DATABASE_CONNECTIONS: '2' }
    const kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...limits })
    const address = await kith.ready
    const lockedWorlds = [await makeWorld(database.url, address), await makeWorld(database.url, address)]
    const world = await makeWorld(database.url, address)
    const lockedSenders = lockedWorlds.map(({ token }) => senderTo(address, token))
    for (const [index, send] of lockedSenders.entries())
      await send('POST', '/v1/people', { external_id: `held ${index}` })
    const locks = [await lockPerson(database.url, 'held 0'), await lockPerson(database.url, 'held 1')]
    const patch = () =>
      lockedSenders.map((send, index) => send('PATCH', `/v1/people/held ${index}`, { first_name: 'x' }))
    const heldReplies = patch()
    await expect.poll(locks[0]!.waiting).toBe(2)
    let slowestMs = 0
    const load = startLoad({
      world,
      addresses: [address],
      seedParts: ['pool', round],
      onAnswer: entry => {
        slowestMs = Math.max(slowestMs, entry.finished - entry.started)
      },
    })
    expect((await Promise.all(heldReplies)).map(({ status }) => status)).toEqual([504, 504])
    const firstAnsweredAt = performance.now()
    const repeatedReplies = patch()
    await expect.poll(locks[0]!.waiting).toBe(2)
    for (const lock of locks) await lock.release()
    const locksReleasedAt = performance.now()
    expect((await Promise.all(repeatedReplies)).map(({ status }) => status)).toEqual([200, 200])
    await load.waitForAcknowledged(50)
    const recoveryMs = performance.now() - locksReleasedAt
    await load.stop()
    await resolveUnknownOutcomes({ journal: load.journal, world, address })
    const waitedCount = load.journal.entries.filter(
      ({ started, finished }) => started < firstAnsweredAt && finished > firstAnsweredAt,
    ).length
    printRound('pool exhausted', round, { waited: waitedCount, slowest_ms: slowestMs, recoveryMs }, load.journal)
    expect(formatFindings(await check(world, load.journal, address)), lastErrors(kith)).toEqual([])
    expect(waitedCount).toBeGreaterThan(0)
    expect(slowestMs).toBeLessThan(requestMs + maxLatenessMs)
    expect(recoveryMs).toBeLessThan(maxRecoveryMs)
    await endProcesses()
    await database.drop()
  })
})

describe('a database server without free connections', () => {
  it.each(rounds(5))('causes 503 until a connection is free: round %i', async round => {
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
    const { observed, journal } = await runOutage({
      world,
      address,
      seedParts: ['full', round],
      begin,
      end,
      durationMs: 1_000,
    })
    await resolveUnknownOutcomes({ journal, world, address })
    printRound('no connection left', round, observed, journal)
    expect(formatFindings(await check(world, journal, address)), lastErrors(kith)).toEqual([])
    expect(observed.otherFailures).toEqual([])
    expect(observed.refused).toBeGreaterThan(0)
    expect(observed.withoutRetryAfter).toBe(0)
    expect(observed.slowestAnswerMs).toBeLessThan(3_000)
    expect(observed.recoveryMs).toBeLessThan(maxRecoveryMs)
    await postgres.stop()
  })
})

/** Opens a connection. Returns undefined if the server has none left. */
async function takeConnection(url: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  return client.connect().then(
    () => client,
    () => undefined,
  )
}
