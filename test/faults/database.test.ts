import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endProcesses, type Kith, launch } from '../support/process.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed } from './load.ts'
import { type Outage, sitThrough } from './outage.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'
import { tell } from './report.ts'
import { chanceOf, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

const answeredWithinMs = 3_000
const recoveredWithinMs = 5_000

let postgres: OwnPostgres
let kith: Kith
let address: string
beforeAll(async () => {
  postgres = await startOwnPostgres()
  kith = launch({ DATABASE_URL: postgres.url, LOG_LEVEL: 'warn' })
  address = await kith.ready
})
afterAll(async () => {
  await postgres.thaw()
  await postgres.stop()
  await endProcesses()
})

type Fault = Pick<Outage, 'begin' | 'end' | 'lastsMs'>

/** One round: an outage under load, what the clients saw of it, and what is stored afterwards. */
async function survive(what: string, round: number, fault: Fault) {
  const world = await makeWorld(postgres.url, address)
  const { seen, journal } = await sitThrough({ world, address, words: [what, round], ...fault })
  await settleKeyed({ journal, world, address })
  tell(what, round, seen, journal)
  expect(linesOf(await check(world, journal, address))).toEqual([])
  expect(kith.child.exitCode ?? kith.child.signalCode).toBeNull()
  expect(seen.others).toEqual([])
  expect(seen.refused).toBeGreaterThan(0)
  expect(seen.withoutRetryAfter).toBe(0)
  expect(seen.slowestAnswerMs).toBeLessThan(answeredWithinMs)
  expect(seen.recoveryMs).toBeLessThan(recoveredWithinMs)
}

describe('PostgreSQL killed under write load', () => {
  it.each(rounds(20))('loses nothing, is 503 meanwhile, and is used again: round %i of kill -9', async round => {
    const chance = chanceOf('kill', round)
    // The server process alone, or each of its processes: a machine that loses its power.
    const begin = () => postgres.kill(round % 2 === 0 ? 'postmaster' : 'all')
    await survive('kill -9 of PostgreSQL', round, { begin, end: postgres.start, lastsMs: chance.below(1_500) })
  })
})

describe('PostgreSQL restarted under write load', () => {
  it.each(rounds(20))('loses nothing, is 503 meanwhile, and is used again: round %i of a restart', async round => {
    const chance = chanceOf('restart', round)
    await survive('restart of PostgreSQL', round, {
      begin: postgres.stop,
      end: postgres.start,
      lastsMs: chance.below(1_500),
    })
  })
})

describe('PostgreSQL that stands still under write load', () => {
  it.each(rounds(20))('loses nothing, is 503 meanwhile, and is used again: round %i of SIGSTOP', async round => {
    const chance = chanceOf('freeze', round)
    const lastsMs = 3_500 + chance.below(1_500)
    await survive('SIGSTOP of PostgreSQL', round, { begin: postgres.freeze, end: postgres.thaw, lastsMs })
  })
})
