import { join } from 'node:path'
import { urlOfDatabase } from '../../src/db/embedded.ts'
import { median } from '../measure.ts'
import type { BenchTarget } from '../run.ts'
import { loadPeer, verifyPeer } from './ask.ts'
import { createKithPeer, requests as kithRequests } from './kith.ts'
import { installPeer, type Peer, type RunningPeer } from './peer.ts'

/** Requests per second of both sides. `failed`: the reason why there are no figures. */
export type PeerComparison =
  | { operation: Operation; ours: number; theirs: number }
  | { operation: Operation; failed: string }
export type Operation = 'patch' | 'get'

/** The result of a peer: its figures, or the reason why it was left out. */
export type Outcome = { peer: Peer; version: string; comparisons: PeerComparison[] } | { peer: Peer; reason: string }

const warmUpSeconds = 2
const operations: readonly Operation[] = ['patch', 'get']

/** Installs and starts a peer next to the service, measures both in alternation, and stops the peer. */
export async function comparePeer(target: BenchTarget, peer: Peer): Promise<Outcome> {
  const { postgres, options } = target
  const folder = join(postgres.folder, `peer-${peer.name}`)
  const database = `peer_${peer.name}`
  try {
    const version = await installPeer(peer, folder)
    await postgres.createDatabase(database)
    const running = await peer.start({ folder, url: urlOfDatabase(postgres.url, database), people: options.people })
    try {
      await verifyPeer(running, peer.requests)
      await verifyPeer(createKithPeer(target), kithRequests)
      const comparisons: PeerComparison[] = []
      for (const operation of operations) comparisons.push(await compareOperation(target, peer, running, operation))
      return { peer, version, comparisons }
    } finally {
      await running.stop()
    }
  } catch (error) {
    return { peer, reason: (error as Error).message }
  }
}

async function compareOperation(
  target: BenchTarget,
  peer: Peer,
  running: RunningPeer,
  operation: Operation,
): Promise<PeerComparison> {
  const { people, rounds, seconds } = target.options
  const loadTheirs = (duration: number) => loadPeer(running, peer.requests[operation], people, duration)
  const loadOurs = (duration: number) => loadPeer(createKithPeer(target), kithRequests[operation], people, duration)
  const figures: { ours: number; theirs: number }[] = []
  try {
    // The first seconds of each side fill caches and compile code, so they do not count.
    await loadTheirs(warmUpSeconds)
    await loadOurs(warmUpSeconds)
    for (let round = 0; round < rounds; round += 1) figures.push(await measureRound(round))
  } catch (error) {
    return { operation, failed: (error as Error).message }
  }
  return {
    operation,
    ours: median(figures.map(({ ours }) => ours)),
    theirs: median(figures.map(({ theirs }) => theirs)),
  }

  /** Measures one round. The second side finds a warmer machine, so the sides take turns at the start. */
  async function measureRound(round: number) {
    const first = round % 2 === 0 ? undefined : (await loadOurs(seconds)).rate
    const theirs = (await loadTheirs(seconds)).rate
    return { theirs, ours: first ?? (await loadOurs(seconds)).rate }
  }
}
