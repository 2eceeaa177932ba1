import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch } from '../support/process.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes, startLoad } from './load.ts'
import { printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
import { openWire, type Plan, type Wire } from './wire.ts'
import { makeWorld, shortenDeadlockTimeout } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let wire: Wire
let kith: Kith
let address: string
beforeAll(async () => {
  database = await createTestDatabase()
  await shortenDeadlockTimeout(database.url)
  wire = await openWire(database.url)
  kith = launch({ DATABASE_URL: wire.url, LOG_LEVEL: 'warn' })
  address = await kith.ready
})
afterAll(async () => {
  await endProcesses()
  wire.close()
  await database.drop()
})

/** The moments at which connections are reset; `countCut` is called for each reset. */
const cuts: [moment: string, makePlan: (shouldCut: () => boolean, countCut: () => void) => Plan][] = [
  [
    'in the middle of a statement',
    (shouldCut, countCut) => ({
      onMessage: ({ type }) => {
        if (type !== 'B' || !shouldCut()) return 'pass'
        countCut()
        return 'cut'
      },
    }),
  ],
  [
    'when COMMIT has been sent',
    (shouldCut, countCut) => ({
      onMessage: ({ text }) => {
        if (text?.toLowerCase() !== 'commit' || !shouldCut()) return 'pass'
        countCut()
        return 'pass and cut'
      },
    }),
  ],
  [
    'when COMMIT has been done, before its answer arrives',
    (shouldCut, countCut) => ({
      onCommitted: () => {
        if (!shouldCut()) return 'pass'
        countCut()
        return 'cut'
      },
    }),
  ],
]

const cutsPerRound = 3

describe('database connections that are reset under write load', () => {
  it.each(rounds(20))('lose no write, and every response states the true outcome: round %i', async round => {
    const random = createRandom('line', round)
    const [moment, makePlan] = cuts[round % cuts.length]!
    const world = await makeWorld(database.url, address)
    const cutTimes: number[] = []
    const allCut = Promise.withResolvers<void>()
    const load = startLoad({ world, addresses: [address], seedParts: ['line', round] })
    await load.waitForAcknowledged(20)
    const countCut = () => {
      cutTimes.push(performance.now())
      if (cutTimes.length >= cutsPerRound) allCut.resolve()
    }
    wire.plan = makePlan(() => cutTimes.length < cutsPerRound && random.oneIn(4), countCut)
    await allCut.promise
    wire.plan = {}
    await load.waitForAcknowledged(40)
    await load.stop()
    await resolveUnknownOutcomes({ journal: load.journal, world, address })
    const refusedCount = load.journal.entries.filter(({ status }) => status === 503).length
    printRound(`a reset ${moment}`, round, { resets: cutTimes.length, 'answered 503': refusedCount }, load.journal)
    expect(formatFindings(await check(world, load.journal, address))).toEqual([])
    expect(cutTimes).toHaveLength(cutsPerRound)
    expect(kith.child.exitCode).toBeNull()
  })
})
