import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { killServer } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, makeFolder } from '../support/process.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed, startLoad } from './load.ts'
import { tell } from './report.ts'
import { chanceOf, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

let dataDir: string
let kith: Kith
let address: string
beforeAll(async () => {
  dataDir = join(await makeFolder(), '.kith')
  await start()
})
afterAll(endProcesses)

async function start() {
  kith = launch({ KITH_DATA_DIR: dataDir, LOG_LEVEL: 'warn' })
  address = await kith.ready
}

/** The address of the embedded database, for as long as `work` takes. */
async function withDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  return work(url).finally(stop)
}

describe('the service and its embedded PostgreSQL killed together under write load', () => {
  it.each(rounds(20))('loses nothing, and starts again by itself: round %i', async round => {
    const chance = chanceOf('embedded', round)
    const world = await withDatabase(url => makeWorld(url, address))
    const load = startLoad({ world, addresses: [address], words: ['embedded', round], untilBroken: true })
    await load.acknowledged(20 + chance.below(120))
    await setTimeout(chance.below(20))
    kith.child.kill('SIGKILL')
    await Promise.all([load.stop(), kith.ended, killServer(join(dataDir, 'postgresql'))])
    const started = performance.now()
    await start()
    const startMs = performance.now() - started
    await settleKeyed({ journal: load.journal, world, address })
    tell('kill -9 of both, embedded', round, { start_ms: startMs }, load.journal)
    const findings = await withDatabase(databaseUrl => check({ ...world, databaseUrl }, load.journal, address))
    expect(linesOf(findings)).toEqual([])
  })
})
