import type { Database } from '../db/db.ts'
import { fail } from '../errors.ts'

/**
 * Counts in what goes on at the same time in a process, for each key of a database. Throws a Fault of 503 where `most` go on
 * already, and says `refusal`; what it returns counts one out again, and must be called once.
 */
export function atMost<Key>(most: number, refusal: string): (db: Database, key: Key) => () => void {
  const running = new WeakMap<Database, Map<Key, number>>()
  return (db, key) => {
    const counts = running.get(db) ?? new Map<Key, number>()
    running.set(db, counts)
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

/**
 * Lets `most` go on at the same time in a process, for each key of a database; the others wait, in order of arrival. What it
 * returns gives the place to the next one, and must be called once.
 */
export function placesFor<Key>(most: number): (db: Database, key: Key) => Promise<() => void> {
  const taken = new WeakMap<Database, Map<Key, { count: number; waiting: (() => void)[] }>>()
  return async (db, key) => {
    const places = taken.get(db) ?? new Map<Key, { count: number; waiting: (() => void)[] }>()
    taken.set(db, places)
    const place = places.get(key) ?? { count: 0, waiting: [] }
    places.set(key, place)
    if (place.count < most) place.count += 1
    else await new Promise<void>(resolve => place.waiting.push(resolve))
    return () => {
      const next = place.waiting.shift()
      if (next) return next()
      place.count -= 1
      if (place.count === 0) places.delete(key)
    }
  }
}
