import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { endProcesses, hasServer, isAlive, type Kith, launchByNpm, makeFolder } from '../support/process.ts'
import { check, linesOf } from './checker.ts'
import { settleKeyed, startLoad } from './load.ts'
import { tell } from './report.ts'
import { chanceOf, rounds } from './rounds.ts'
import { makeWorld } from './world.ts'

let data_dir: string
let kith: Kith
let address: string
beforeAll(async () => {
  data_dir = join(await makeFolder(), '.kith')
  await start()
})
afterAll(endProcesses)

async function start() {
  kith = launchByNpm({ KITH_DATA_DIR: data_dir, LOG_LEVEL: 'warn' })
  address = await kith.ready
}

/** The address of the embedded database, for as long as `work` takes. */
async function withDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url, stop } = await startEmbedded({ data_dir, purpose: 'command', log: () => {} })
  return work(url).finally(stop)
}

const second_after_ms = 10

describe.each([
  { stop: 'SIGTERM to its process group', signals: ['SIGTERM'] },
  { stop: 'Ctrl-C', signals: ['SIGINT'] },
  { stop: 'two signals to its process group, 10 ms apart', signals: ['SIGTERM', 'SIGTERM'] },
] as const)('npm start under eight clients, stopped by $stop', ({ stop, signals }) => {
  it.each(rounds(30))(
    'leaves no request without an answer and no process behind, and loses nothing: round %i',
    async round => {
      const chance = chanceOf('stop', stop, round)
      const world = await withDatabase(url => makeWorld(url, address))
      const clients = { clients: 8, until_broken: true, patient: true }
      const load = startLoad({ world, addresses: [address], words: ['stop', stop, round], ...clients })
      await load.acknowledged(20 + chance.below(120))
      await setTimeout(chance.below(20))
      const { pid } = kith.child
      const stopped = performance.now()
      for (const [index, signal] of signals.entries()) {
        if (index > 0) await setTimeout(second_after_ms)
        process.kill(-pid!, signal)
      }
      const [code] = await Promise.all([kith.ended, load.ended])
      const stop_ms = performance.now() - stopped
      const left = { processes: isAlive(-pid!), postgresql: await hasServer(data_dir) }
      const cut = load.journal.entries.filter(({ writes }) => writes.some(({ outcome }) => outcome === 'unknown'))
      await start()
      tell(`npm start stopped by ${stop}`, round, { stop_ms, code, cut: cut.length, ...left }, load.journal)
      expect([cut, left]).toEqual([[], { processes: false, postgresql: false }])
      await settleKeyed({ journal: load.journal, world, address })
      const findings = await withDatabase(database_url => check({ ...world, database_url }, load.journal, address))
      expect(linesOf(findings)).toEqual([])
    },
  )
})
