import { setTimeout } from 'node:timers/promises'
import type { Reply } from '../support/service.ts'
import type { Entry } from './journal.ts'
import { startLoad } from './load.ts'
import type { World } from './world.ts'

/** Observations of the clients of a load during an outage. Durations are in milliseconds. */
export type OutageObservations = {
  /** The longest time that a request pending during the outage waited for its response. */
  slowestAnswerMs: number
  /** The number of 503 responses. */
  refused: number
  /** The number of 503 responses without a valid Retry-After. */
  withoutRetryAfter: number
  /** Statuses of 500 and above other than 503, and 0 for each broken connection. */
  otherFailures: number[]
  /** The time from the end of the outage to the first acknowledged write that was sent after it. */
  recoveryMs: number
}

export type Outage = {
  world: World
  address: string
  seedParts: (string | number)[]
  /** Runs under load, a moment before the outage. */
  prepare?(): Promise<void>
  /** Starts the outage. */
  begin(): Promise<void>
  /** Ends the outage. Resolves when the database is available again. */
  end(): Promise<void>
  /** Runs under load, after a write was acknowledged again. */
  finish?(): Promise<void>
  /** The duration of the outage. */
  durationMs: number
}

/** Writes before, during and after an outage of the database. Returns the clients' observations and their journal. */
export async function runOutage({ world, address, seedParts, prepare, begin, end, finish, durationMs }: Outage) {
  const observed: OutageObservations = {
    slowestAnswerMs: 0,
    refused: 0,
    withoutRetryAfter: 0,
    otherFailures: [],
    recoveryMs: Infinity,
  }
  let isAway = false
  let beganAt = Infinity
  let restoredAt = Infinity
  const recovered = Promise.withResolvers<void>()
  const onAnswer = (entry: Entry, reply: Reply | 'never sent' | undefined) => {
    const acknowledged = entry.status >= 200 && entry.status < 300
    if (acknowledged && entry.started > restoredAt && observed.recoveryMs === Infinity) {
      observed.recoveryMs = entry.finished - restoredAt
      recovered.resolve()
    }
    if (isAway || entry.started > beganAt) {
      // For a request that began before the outage, the wait counts from the start of the outage.
      const waitedMs = entry.finished - Math.max(entry.started, beganAt)
      observed.slowestAnswerMs = Math.max(observed.slowestAnswerMs, waitedMs)
    }
    if (typeof reply !== 'object') observed.otherFailures.push(0)
    else if (reply.status === 503) {
      observed.refused += 1
      if (!/^\d+$/.test(reply.headers.get('Retry-After') ?? '')) observed.withoutRetryAfter += 1
    } else if (reply.status >= 500 && reply.body.error !== 'not_found') observed.otherFailures.push(reply.status)
  }
  const load = startLoad({ world, addresses: [address], seedParts, onAnswer })
  await load.waitForAcknowledged(60)
  if (prepare) {
    await prepare()
    await load.waitForAcknowledged(60)
  }
  beganAt = performance.now()
  isAway = true
  await begin()
  await setTimeout(durationMs)
  await end()
  restoredAt = performance.now()
  await Promise.race([recovered.promise, setTimeout(20_000, undefined, { ref: false })])
  isAway = false
  await finish?.()
  await load.waitForAcknowledged(30)
  await load.stop()
  return { observed, journal: load.journal }
}
