import { type Database, rootOf } from '../db/db.ts'
import { fail } from '../errors.ts'

/**
 * Limits concurrent work to `max` per key of a database, within this process. Throws a Fault of 503 with the message `refusal` if
 * the limit is reached. The function that it returns releases the permit, and must be called exactly once.
 */
export function semaphore<Key>(max: number, refusal: string): (db: Database, key: Key) => () => void {
  const running = new WeakMap<Database, Map<Key, number>>()
  return (db, key) => {
    const counts = running.get(rootOf(db)) ?? new Map<Key, number>()
    running.set(rootOf(db), counts)
    const before = counts.get(key) ?? 0
    if (before >= max) fail('operation_failed', refusal, { status: 503, headers: { 'Retry-After': '10' } })
    counts.set(key, before + 1)
    return () => {
      const left = counts.get(key)! - 1
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
    }
  }
}
