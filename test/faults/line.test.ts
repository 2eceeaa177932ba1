import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch } from '../support/process.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed, startLoad } from './load.ts'
import { tell } from './report.ts'
import { chanceOf, rounds } from './rounds.ts'
import { openWire, type Plan, type Wire } from './wire.ts'
import { findDeadlocksSoon, makeWorld } from './world.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let wire: Wire
let kith: Kith
let address: string
beforeAll(async () => {
  database = await createTestDatabase()
  await findDeadlocksSoon(database.url)
  wire = await openWire(database.url)
  kith = launch({ DATABASE_URL: wire.url, LOG_LEVEL: 'warn' })
  address = await kith.ready
})
afterAll(async () => {
  await endProcesses()
  wire.close()
  await database.drop()
})

/** Where a connection is reset, again and again; `hit` is called each time. */
const cuts: [where: string, plan: (chance: () => boolean, hit: () => void) => Plan][] = [
  [
    'in the middle of a statement',
    (chance, hit) => ({
      onMessage: ({ type }) => {
        if (type !== 'B' || !chance()) return 'pass'
        hit()
        return 'cut'
      },
    }),
  ],
  [
    'when COMMIT has been sent',
    (chance, hit) => ({
      onMessage: ({ text }) => {
        if (text?.toLowerCase() !== 'commit' || !chance()) return 'pass'
        hit()
        return 'pass and cut'
      },
    }),
  ],
  [
    'when COMMIT has been done, before its answer arrives',
    (chance, hit) => ({
      onCommitted: () => {
        if (!chance()) return 'pass'
        hit()
        return 'cut'
      },
    }),
  ],
]

const cutsARound = 3

describe('connections to the database that are reset under write load', () => {
  it.each(rounds(20))('lose nothing, and what is told of each write is true: round %i', async round => {
    const chance = chanceOf('line', round)
    const [where, makePlan] = cuts[round % cuts.length]!
    const world = await makeWorld(database.url, address)
    const hits: number[] = []
    const cutting = Promise.withResolvers<void>()
    const load = startLoad({ world, addresses: [address], words: ['line', round] })
    await load.acknowledged(20)
    const hit = () => {
      hits.push(performance.now())
      if (hits.length >= cutsARound) cutting.resolve()
    }
    wire.plan = makePlan(() => hits.length < cutsARound && chance.oneIn(4), hit)
    await cutting.promise
    wire.plan = {}
    await load.acknowledged(40)
    await load.stop()
    await settleKeyed({ journal: load.journal, world, address })
    const faults = load.journal.entries.filter(({ status }) => status === 503).length
    tell(`a reset ${where}`, round, { resets: hits.length, 'answered 503': faults }, load.journal)
    expect(linesOf(await check(world, load.journal, address))).toEqual([])
    expect(hits).toHaveLength(cutsARound)
    expect(kith.child.exitCode).toBeNull()
  })
})
