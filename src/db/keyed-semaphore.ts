import type { Signal } from '../signal.ts'
import { type Database, rootOf } from './db.ts'

type Permits = { running: number; waiting: Set<() => void> }

/** Limits concurrent work to `maxConcurrent` per key of a database, within this process. */
export class KeyedSemaphore<Key> {
  readonly #maxConcurrent: number
  readonly #permitsByDatabase = new WeakMap<Database, Map<Key, Permits>>()

  constructor(maxConcurrent: number) {
    this.#maxConcurrent = maxConcurrent
  }

  /** Runs `work` when a permit of its key is free, in order of arrival. Rejects with the signal's reason. */
  async run<T>(db: Database, key: Key, signal: Signal | undefined, work: () => Promise<T>): Promise<T> {
    const release = this.tryAcquire(db, key) ?? (await this.#acquire(db, key, signal))
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Returns the function that releases the permit, which must be called exactly once; undefined if no permit is free. */
  tryAcquire(db: Database, key: Key): (() => void) | undefined {
    const permits = this.#permitsOf(db, key)
    if (permits.running >= this.#maxConcurrent) return undefined
    permits.running += 1
    return () => this.#release(db, key, permits)
  }

  #permitsOf(db: Database, key: Key): Permits {
    const permitsByKey = this.#permitsByDatabase.get(rootOf(db)) ?? new Map<Key, Permits>()
    this.#permitsByDatabase.set(rootOf(db), permitsByKey)
    const permits = permitsByKey.get(key) ?? { running: 0, waiting: new Set() }
    permitsByKey.set(key, permits)
    return permits
  }

  #acquire(db: Database, key: Key, signal: Signal | undefined): Promise<() => void> {
    const permits = this.#permitsOf(db, key)
    const { waiting } = permits
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const enter = () => {
        signal?.removeEventListener('abort', abort)
        resolve(() => this.#release(db, key, permits))
      }
      const abort = () => {
        waiting.delete(enter)
        reject(signal?.reason)
      }
      waiting.add(enter)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Passes the permit to the work that has waited longest, or frees it. */
  #release(db: Database, key: Key, permits: Permits) {
    const [next] = permits.waiting
    if (next) {
      permits.waiting.delete(next)
      next()
      return
    }
    permits.running -= 1
    if (permits.running === 0) this.#permitsByDatabase.get(rootOf(db))!.delete(key)
  }
}
