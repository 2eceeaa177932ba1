import { setTimeout } from 'node:timers/promises'
import type { JWK } from 'jose'
import type { Database } from '../../db/db.ts'
import type { KeySource } from '../issuers.ts'
import { ageOf } from '../ttl-cache.ts'
import type { VerifyingKey } from './jwk.ts'
import { type Keys, loadKeys, ownKidPattern } from './keys.ts'

/** Keys of this age are read again in the background and still used. */
const refreshMs = 5_000
/** Keys of this age are read again before they are used. */
const maxAgeMs = 10_000
/** The pause between two look-ups, for all callers together. */
const pauseMs = 1_000
const maxWaiting = 1_000

/**
 * The service's own keys. Another process may rotate them, so an unknown `kid` of the right form is looked up in the
 * database, at most once a second. Requests that arrive in between wait for the next look-up, because tokens of a new
 * key must not be refused.
 */
export function createOwnKeys(
  { db, keys: initialKeys, sharedSecret }: { db: Database; keys: Keys; sharedSecret: VerifyingKey | undefined },
  nowMs: () => number,
): KeySource & { jwks(): Promise<{ keys: JWK[] }> } {
  let keys = initialKeys
  let readAtMs = nowMs()
  let waitingCount = 0
  const { run, runUntil } = createThrottle(read, nowMs)

  async function read() {
    const startedAtMs = nowMs()
    keys = await loadKeys(db, keys.verifying)
    readAtMs = startedAtMs
  }

  const ageMs = () => ageOf(readAtMs, nowMs())

  function peek(kid: string | undefined): VerifyingKey | undefined {
    if (kid === undefined) return sharedSecret
    if (ageMs() >= maxAgeMs) return undefined
    if (ageMs() >= refreshMs) run().catch(() => {})
    return keys.verifying.get(kid)
  }

  async function find(kid: string | undefined): Promise<VerifyingKey | undefined> {
    const cached = peek(kid)
    if (cached || kid === undefined || !ownKidPattern.test(kid)) return cached
    if (waitingCount >= maxWaiting && ageMs() < maxAgeMs) return undefined
    waitingCount++
    try {
      await runUntil(() => keys.verifying.has(kid))
      return keys.verifying.get(kid)
    } finally {
      waitingCount--
    }
  }

  /** The public halves of all valid keys. They are at most a second old while the database responds. */
  async function jwks() {
    // Cached keys are better than an error, because clients of this endpoint cache its response for much longer.
    if (ageMs() >= pauseMs) await run().catch(() => {})
    return keys.publicJwks
  }

  return { peek, find, jwks }
}

/**
 * Runs the same work at a limited rate, however many callers request it. Callers share a run. Runs start at least
 * `pauseMs` milliseconds apart, and reject if the work does.
 */
function createThrottle(work: () => Promise<void>, nowMs: () => number) {
  let startedAtMs = Number.NEGATIVE_INFINITY
  let startedRuns = 0
  let lastCompletedRun = 0
  let running: Promise<void> | undefined

  async function startRun() {
    // Even a pause of 0 ms waits for a timer, so all callers of one event-loop turn share the run.
    await setTimeout(Math.max(0, pauseMs - ageOf(startedAtMs, nowMs())))
    startedAtMs = nowMs()
    const runNumber = ++startedRuns
    await work()
    lastCompletedRun = runNumber
  }

  /** Waits for the pending run, or starts the next one. */
  function run(): Promise<void> {
    running ??= startRun().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    run,
    /**
     * Waits until `isDone` holds, at most until a run that began after this call has ended. A run that began earlier
     * may have read older data.
     */
    runUntil: async (isDone: () => boolean): Promise<void> => {
      const startedBefore = startedRuns
      do await run()
      while (!isDone() && lastCompletedRun <= startedBefore)
    },
  }
}
