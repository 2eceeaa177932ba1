import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { endProcesses, hasServer, isAlive, type Kith, launchByNpm, makeFolder } from '../support/process.ts'
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
  kith = launchByNpm({ KITH_DATA_DIR: dataDir, LOG_LEVEL: 'warn' })
  address = await kith.ready
}

/** Runs `work` with the URL of the embedded database, which is only open that long. */
async function withDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  return work(url).finally(stop)
}

const secondSignalAfterMs = 10

describe.each([
  { stop: 'SIGTERM to its process group', signals: ['SIGTERM'] },
  { stop: 'Ctrl-C', signals: ['SIGINT'] },
  { stop: 'two signals to its process group, 10 ms apart', signals: ['SIGTERM', 'SIGTERM'] },
] as const)('npm start under eight clients, stopped by $stop', ({ stop, signals }) => {
  it.each(rounds(30))(
    'leaves no request unanswered and no process running, and loses no write: round %i',
    async round => {
      const random = createRandom('stop', stop, round)
      const world = await withDatabase(url => makeWorld(url, address, dataDir))
      const clients = { clients: 8, stopsOnDisconnect: true, honorsRetryAfter: true }
      const load = startLoad({ world, addresses: [address], seedParts: ['stop', stop, round], ...clients })
      await load.waitForAcknowledged(20 + random.below(120))
      await setTimeout(random.below(20))
      const { pid } = kith.child
      const stopped = performance.now()
      for (const [index, signal] of signals.entries()) {
        if (index > 0) await setTimeout(secondSignalAfterMs)
        process.kill(-pid!, signal)
      }
      const [code] = await Promise.all([kith.ended, load.ended])
      const stopMs = performance.now() - stopped
      const leftovers = { processes: isAlive(-pid!), postgresql: await hasServer(dataDir) }
      const unanswered = load.journal.entries.filter(({ writes }) =>
        writes.some(({ outcome }) => outcome === 'unknown'),
      )
      await start()
      printRound(
        `npm start stopped by ${stop}`,
        round,
        { stop_ms: stopMs, code, cut: unanswered.length, ...leftovers },
        load.journal,
      )
      expect([unanswered, leftovers]).toEqual([[], { processes: false, postgresql: false }])
      await resolveUnknownOutcomes({ journal: load.journal, world, address })
      const findings = await withDatabase(databaseUrl => check({ ...world, databaseUrl }, load.journal, address))
      expect(formatFindings(findings)).toEqual([])
    },
  )
})
