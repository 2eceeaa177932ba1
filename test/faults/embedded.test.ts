import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { killServer } from '../support/embedded-service.ts'
import { endProcesses, type Kith, launch, makeFolder } from '../support/process.ts'
import { check, formatFindings } from './checker.ts'
import { resolveUnknownOutcomes, startLoad } from './load.ts'
import { printRound } from './report.ts'
import { createRandom, rounds } from './rounds.ts'
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

/** Runs `work` with the URL of the embedded database, which is only open that long. */
async function withDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  return work(url).finally(stop)
}

describe('kith and its embedded PostgreSQL killed together under write load', () => {
  it.each(rounds(20))('loses no write and starts again without repair: round %i', async round => {
    const random = createRandom('embedded', round)
    const world = await withDatabase(url => makeWorld(url, address, dataDir))
    const load = startLoad({ world, addresses: [address], seedParts: ['embedded', round], stopsOnDisconnect: true })
    await load.waitForAcknowledged(20 + random.below(120))
    await setTimeout(random.below(20))
    kith.child.kill('SIGKILL')
    await Promise.all([load.stop(), kith.ended, killServer(join(dataDir, 'postgresql'))])
    const started = performance.now()
    await start()
    const startMs = performance.now() - started
    await resolveUnknownOutcomes({ journal: load.journal, world, address })
    printRound('kill -9 of both, embedded', round, { start_ms: startMs }, load.journal)
    const findings = await withDatabase(databaseUrl => check({ ...world, databaseUrl }, load.journal, address))
    expect(formatFindings(findings)).toEqual([])
  })
})
