import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, launch } from '../support/process.ts'
import type { Reply } from '../support/service.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed, startLoad } from './load.ts'
import { lastFaults, tell } from './report.ts'
import { chanceOf, rounds } from './rounds.ts'
import { findDeadlocksSoon, makeWorld } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let environment: Record<string, string>
beforeAll(async () => {
  database = await createTestDatabase()
  await findDeadlocksSoon(database.url)
  environment = { DATABASE_URL: database.url, LOG_LEVEL: 'warn' }
})
afterAll(async () => {
  await endProcesses()
  await database.drop()
})

describe('the service killed under write load', () => {
  let next = launchOne

  it.each(rounds(50))(
    'loses nothing that was answered and leaves nothing half done: round %i of kill -9',
    async round => {
      const chance = chanceOf('server', round)
      const { kith, address } = await next()
      const world = await makeWorld(database.url, address)
      const load = startLoad({ world, addresses: [address], words: ['server', round], untilBroken: true })
      await load.acknowledged(20 + chance.below(120))
      await setTimeout(chance.below(20))
      kith.child.kill('SIGKILL')
      await Promise.all([load.stop(), kith.ended])
      const started = performance.now()
      const after = await launchOne()
      const startMs = performance.now() - started
      next = async () => after
      await settleKeyed({ journal: load.journal, world, address: after.address })
      tell('kill -9 of the service', round, { start_ms: startMs }, load.journal)
      expect(linesOf(await check(world, load.journal, after.address)), lastFaults(kith)).toEqual([])
    },
  )

  async function launchOne() {
    const kith = launch(environment)
    return { kith, address: await kith.ready }
  }
})

describe('two services on one database, one of them killed under write load', () => {
  it.each(rounds(10))('the other goes on, and nothing is lost: round %i', async round => {
    const chance = chanceOf('two', round)
    const [one, other] = [launch(environment), launch(environment)]
    const addresses = [await one.ready, await other.ready]
    const world = await makeWorld(database.url, addresses[1]!)
    const faults: unknown[] = []
    const load = startLoad({
      world,
      addresses,
      words: ['two', round],
      // A connection that breaks is the dead one's; an answer is the other's.
      onAnswer: (_, reply) => {
        if (typeof reply === 'object' && reply.status >= 500 && !isOfTheMix(reply)) faults.push(reply.body)
      },
    })
    await load.acknowledged(40 + chance.below(100))
    one.child.kill('SIGKILL')
    await one.ended
    await load.acknowledged(80)
    await load.stop()
    await settleKeyed({ journal: load.journal, world, address: addresses[1]! })
    tell('one of two services', round, {}, load.journal)
    expect(linesOf(await check(world, load.journal, addresses[1]!)), lastFaults(other)).toEqual([])
    expect(faults).toEqual([])
    other.child.kill('SIGKILL')
    await other.ended
  })
})

/** Of a person who is not there; or of writes that others got ahead of ten times, as those of the mix may. */
const isOfTheMix = ({ body }: Reply) => body.error === 'not_found' || /^The request kept conflicting/.test(body.message ?? '')
