import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endProcesses, type Kith, launch } from '../support/process.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes } from './load.ts'
import { type Outage, runOutage } from './outage.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'
import { printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

const maxAnswerMs = 3_000
const maxRecoveryMs = 5_000

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

type Fault = Pick<Outage, 'begin' | 'end' | 'durationMs'>

/** Runs one outage under load, and checks what the clients observed and what is stored afterwards. */
async function runRound(faultName: string, round: number, fault: Fault) {
  const world = await makeWorld(postgres.url, address)
  const { observed, journal } = await runOutage({ world, address, seedParts: [faultName, round], ...fault })
  await resolveUnknownOutcomes({ journal, world, address })
  printRound(faultName, round, observed, journal)
  expect(formatFindings(await check(world, journal, address))).toEqual([])
  expect(kith.child.exitCode ?? kith.child.signalCode).toBeNull()
  expect(observed.otherFailures).toEqual([])
  expect(observed.refused).toBeGreaterThan(0)
  expect(observed.withoutRetryAfter).toBe(0)
  expect(observed.slowestAnswerMs).toBeLessThan(maxAnswerMs)
  expect(observed.recoveryMs).toBeLessThan(maxRecoveryMs)
}

describe('PostgreSQL killed under write load', () => {
  it.each(rounds(20))(
    'loses no write, returns 503 during the outage, and recovers: round %i of kill -9',
    async round => {
      const random = createRandom('kill', round)
      // Rounds alternate between killing the server process alone and all its processes, as a power failure does.
      const begin = () => postgres.kill(round % 2 === 0 ? 'postmaster' : 'all')
      await runRound('kill -9 of PostgreSQL', round, { begin, end: postgres.start, durationMs: random.below(1_500) })
    },
  )
})

describe('PostgreSQL restarted under write load', () => {
  it.each(rounds(20))(
    'loses no write, returns 503 during the outage, and recovers: round %i of a restart',
    async round => {
      const random = createRandom('restart', round)
      await runRound('restart of PostgreSQL', round, {
        begin: postgres.stop,
        end: postgres.start,
        durationMs: random.below(1_500),
      })
    },
  )
})

describe('PostgreSQL frozen under write load', () => {
  it.each(rounds(20))(
    'loses no write, returns 503 during the outage, and recovers: round %i of SIGSTOP',
    async round => {
      const random = createRandom('freeze', round)
      const durationMs = 3_500 + random.below(1_500)
      await runRound('SIGSTOP of PostgreSQL', round, {
        begin: postgres.freeze,
        end: postgres.thaw,
        durationMs,
      })
    },
  )
})
