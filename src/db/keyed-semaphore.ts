import type { Signal } from '../signal.ts'
import { type Database, rootOf } from './db.ts'

type Permits = { running: number; waiting: Set<() => void> }

/** Runs `work` when a permit of its key is free, in order of arrival. Rejects with the signal's reason. */
export type KeyedSemaphore<Key> = <T>(
  db: Database,
  key: Key,
  signal: Signal | undefined,
  work: () => Promise<T>,
) => Promise<T>

/** Limits concurrent work to `maxConcurrent` per key of a database, within this process. */
export function keyedSemaphore<Key>(maxConcurrent: number): KeyedSemaphore<Key> {
  const permitsByDatabase = new WeakMap<Database, Map<Key, Permits>>()
  return async (db, key, signal, work) => {
    const permitsByKey = permitsByDatabase.get(rootOf(db)) ?? new Map<Key, Permits>()
    permitsByDatabase.set(rootOf(db), permitsByKey)
    const permits = permitsByKey.get(key) ?? { running: 0, waiting: new Set() }
    permitsByKey.set(key, permits)
    if (permits.running < maxConcurrent) permits.running += 1
    else await acquire(permits, signal)
    try {
      return await work()
    } finally {
      release(permits)
      if (permits.running === 0) permitsByKey.delete(key)
    }
  }
}

function acquire({ waiting }: Permits, signal: Signal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const enter = () => {
      signal?.removeEventListener('abort', abort)
      resolve()
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
function release(permits: Permits) {
  const [next] = permits.waiting
  if (!next) {
    permits.running -= 1
    return
  }
  permits.waiting.delete(next)
  next()
}
