import { join } from 'node:path'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { median } from '../measure.ts'
import { type BenchRow, rows } from '../rows.ts'
import { askService, type Theatre } from '../run.ts'
import { loadPeer, verifyPeer } from './ask.ts'
import { installPeer, type Peer, type RunningPeer } from './peer.ts'

/** Requests a second of both sides; `failed` tells why there are none. */
export type Duel = { work: Work; ours: number; theirs: number } | { work: Work; failed: string }
export type Work = 'patch' | 'get'

/** What became of a peer: its figures, or the reason why it was left out. */
export type Outcome = { peer: Peer; version: string; duels: Duel[] } | { peer: Peer; reason: string }

const warm_up_seconds = 2
const works: readonly Work[] = ['patch', 'get']

/** Installs and starts a peer beside the service, measures both in alternation, and ends the peer. */
export async function meetPeer(theatre: Theatre, peer: Peer): Promise<Outcome> {
  const { ground, options } = theatre
  const folder = join(ground.folder, `peer-${peer.name}`)
  const database = `peer_${peer.name}`
  try {
    const version = await installPeer(peer, folder)
    await ground.createDatabase(database)
    const running = await peer.start({ folder, url: urlOfDatabase(ground.url, database), people: options.people })
    try {
      await verifyPeer(running, peer.requests)
      const duels: Duel[] = []
      for (const work of works) duels.push(await duel(theatre, peer, running, work))
      return { peer, version, duels }
    } finally {
      await running.stop()
    }
  } catch (error) {
    return { peer, reason: (error as Error).message }
  }
}

async function duel(theatre: Theatre, peer: Peer, running: RunningPeer, work: Work): Promise<Duel> {
  const { people, rounds, seconds } = theatre.options
  const row: BenchRow = rows.find(({ name }) => name === work)!
  const ask = async (duration: number) => ({
    theirs: (await loadPeer(running, peer.requests[work], people, duration)).rate,
    ours: (await askService(theatre, row, duration)).rate,
  })
  const found: { ours: number; theirs: number }[] = []
  try {
    // The first seconds of either side fill caches and compile; they do not count.
    await ask(warm_up_seconds)
    for (let round = 0; round < rounds; round += 1) found.push(await ask(seconds))
  } catch (error) {
    return { work, failed: (error as Error).message }
  }
  return { work, ours: median(found.map(({ ours }) => ours)), theirs: median(found.map(({ theirs }) => theirs)) }
}
