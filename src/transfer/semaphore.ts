import { type Database, rootOf } from '../db/db.ts'
import { fail } from '../errors.ts'

/**
 * Counts in what goes on at the same time in a process, for each key of a database. Throws a Fault of 503 where `most` go on
 * already, and says `refusal`; what it returns counts one out again, and must be called once.
 */
export function semaphore<Key>(most: number, refusal: string): (db: Database, key: Key) => () => void {
  const running = new WeakMap<Database, Map<Key, number>>()
  return (db, key) => {
    const counts = running.get(rootOf(db)) ?? new Map<Key, number>()
    running.set(rootOf(db), counts)
    const before = counts.get(key) ?? 0
    if (before >= most) fail('operation_failed', refusal, { status: 503, headers: { 'Retry-After': '10' } })
    counts.set(key, before + 1)
    return () => {
      const left = counts.get(key)! - 1
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
    }
  }
}
