import { join } from 'node:path'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { median } from '../measure.ts'
import type { Theatre } from '../run.ts'
import { loadPeer, verifyPeer } from './ask.ts'
import { kithOf, requests as own_requests } from './kith.ts'
import { installPeer, type Peer, type RunningPeer } from './peer.ts'

/** Requests a second of both sides; `failed` tells why there are none. */
export type Duel = { work: Work; ours: number; theirs: number } | { work: Work; failed: string }
export type Work = 'patch' | 'get'

/** What became of a peer: its figures, or the reason why it was left out. */
export type Outcome = { peer: Peer; version: string; duels: Duel[] } | { peer: Peer; reason: string }

const warmUpSeconds = 2
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
      await verifyPeer(kithOf(theatre), own_requests)
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
  const askTheirs = (duration: number) => loadPeer(running, peer.requests[work], people, duration)
  const askOurs = (duration: number) => loadPeer(kithOf(theatre), own_requests[work], people, duration)
  const found: { ours: number; theirs: number }[] = []
  try {
    // The first seconds of either side fill caches and compile; they do not count.
    await askTheirs(warmUpSeconds)
    await askOurs(warmUpSeconds)
    for (let round = 0; round < rounds; round += 1) found.push(await oneRound(round))
  } catch (error) {
    return { work, failed: (error as Error).message }
  }
  return { work, ours: median(found.map(({ ours }) => ours)), theirs: median(found.map(({ theirs }) => theirs)) }

  /** Whoever comes second finds the machine warmer: they take turns. */
  async function oneRound(round: number) {
    const first = round % 2 === 0 ? undefined : (await askOurs(seconds)).rate
    const theirs = (await askTheirs(seconds)).rate
    return { theirs, ours: first ?? (await askOurs(seconds)).rate }
  }
}
