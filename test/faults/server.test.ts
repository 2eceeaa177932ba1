import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch } from '../support/process.ts'
import type { Reply } from '../support/service.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes, startLoad } from './load.ts'
import { lastErrors, printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { makeWorld, shortenDeadlockTimeout } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
beforeAll(async () => {
  database = await createTestDatabase()
  await shortenDeadlockTimeout(database.url)
  environment = { DATABASE_URL: database.url, LOG_LEVEL: 'warn' }
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

describe('kith killed under write load', () => {
  let startNext = startService

  it.each(rounds(50))('loses no acknowledged write and leaves no partial one: round %i of kill -9', async round => {
    const random = createRandom('server', round)
    const { kith, address } = await startNext()
    const world = await makeWorld(database.url, address)
    const load = startLoad({ world, addresses: [address], seedParts: ['server', round], stopsOnDisconnect: true })
    await load.waitForAcknowledged(20 + random.below(120))
    await setTimeout(random.below(20))
    kith.child.kill('SIGKILL')
    await Promise.all([load.stop(), kith.ended])
    const started = performance.now()
    const restarted = await startService()
    const startMs = performance.now() - started
    startNext = async () => restarted
    await resolveUnknownOutcomes({ journal: load.journal, world, address: restarted.address })
    printRound('kill -9 of the service', round, { start_ms: startMs }, load.journal)
    expect(formatFindings(await check(world, load.journal, restarted.address)), lastErrors(kith)).toEqual([])
  })

  async function startService() {
    const kith = launch(environment)
    return { kith, address: await kith.ready }
  }
})

describe('one of two kith processes on one database killed under write load', () => {
  it.each(rounds(10))('does not stop the other process and loses no write: round %i', async round => {
    const random = createRandom('two', round)
    const [one, other] = [launch(environment), launch(environment)]
    const addresses = [await one.ready, await other.ready]
    const world = await makeWorld(database.url, addresses[1]!)
    const unexpectedReplies: unknown[] = []
    const load = startLoad({
      world,
      addresses,
      seedParts: ['two', round],
      // Only the killed process breaks connections, so every reply comes from the other.
      onAnswer: (_, reply) => {
        if (typeof reply === 'object' && reply.status >= 500 && !isExpectedOfMix(reply))
          unexpectedReplies.push(reply.body)
      },
    })
    await load.waitForAcknowledged(40 + random.below(100))
    one.child.kill('SIGKILL')
    await one.ended
    await load.waitForAcknowledged(80)
    await load.stop()
    await resolveUnknownOutcomes({ journal: load.journal, world, address: addresses[1]! })
    printRound('one of two services', round, {}, load.journal)
    expect(formatFindings(await check(world, load.journal, addresses[1]!)), lastErrors(other)).toEqual([])
    expect(unexpectedReplies).toEqual([])
    other.child.kill('SIGKILL')
    await other.ended
  })
})

/** The mix of writes may address a person who does not exist, and may conflict with concurrent writes ten times. */
const isExpectedOfMix = ({ body }: Reply) =>
  body.error === 'not_found' || /^The request kept conflicting/.test(body.message ?? '')
