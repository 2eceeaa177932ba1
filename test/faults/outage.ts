import { setTimeout } from 'node:timers/promises'
import type { Reply } from '../support/service.ts'
import type { Entry } from './journal.ts'
import { startLoad } from './load.ts'
import type { World } from './world.ts'

/** What the clients of a load saw of an outage, in milliseconds. */
export type Seen = {
  /** The longest that a request under way during the outage waited for its answer. */
  slowestAnswerMs: number
  /** How many were answered 503; how many of those without a Retry-After. */
  refused: number
  withoutRetryAfter: number
  /** Statuses from 500 up that are not 503, and connections that broke. */
  others: number[]
  /** From the database's return to the first write that was acknowledged. */
  recoveryMs: number
}

export type Outage = {
  world: World
  address: string
  words: (string | number)[]
  /** Takes the database away. */
  begin(): Promise<void>
  /** Resolves when it is back. */
  end(): Promise<void>
  /** How long it stays away. */
  lastsMs: number
}

/** Writes before, during and after an outage of the database; what the clients saw, and their journal. */
export async function sitThrough({ world, address, words, begin, end, lastsMs }: Outage) {
  const seen: Seen = { slowestAnswerMs: 0, refused: 0, withoutRetryAfter: 0, others: [], recoveryMs: Infinity }
  let away = false
  let began = Infinity
  let back = Infinity
  const recovered = Promise.withResolvers<void>()
  const onAnswer = (entry: Entry, reply: Reply | 'never sent' | undefined) => {
    const acknowledged = entry.status >= 200 && entry.status < 300
    if (acknowledged && entry.started > back && seen.recoveryMs === Infinity) {
      seen.recoveryMs = entry.finished - back
      recovered.resolve()
    }
    if (away || entry.started > began) {
      // A request that began before the outage waits for its end from its beginning.
      const waitedMs = entry.finished - Math.max(entry.started, began)
      seen.slowestAnswerMs = Math.max(seen.slowestAnswerMs, waitedMs)
    }
    if (typeof reply !== 'object') seen.others.push(0)
    else if (reply.status === 503) {
      seen.refused += 1
      if (!/^\d+$/.test(reply.headers.get('Retry-After') ?? '')) seen.withoutRetryAfter += 1
    } else if (reply.status >= 500 && reply.body.error !== 'not_found') seen.others.push(reply.status)
  }
  const load = startLoad({ world, addresses: [address], words, onAnswer })
  await load.acknowledged(60)
  began = performance.now()
  away = true
  await begin()
  await setTimeout(lastsMs)
  await end()
  back = performance.now()
  await Promise.race([recovered.promise, setTimeout(20_000, undefined, { ref: false })])
  away = false
  await load.acknowledged(30)
  await load.stop()
  return { seen, journal: load.journal }
}
