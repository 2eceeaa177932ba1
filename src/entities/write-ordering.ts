import type { Item } from './conflicts.ts'
import { nameKey, requiredNames } from './plan-write.ts'

/** The names that an array of writes writes or mentions, and a promise for its end. */
type PendingArray = { written: Set<string>; mentioned: Set<string>; ended: Promise<void> }

/**
 * Keeps concurrent arrays of writes in order. An array that writes a name waits for earlier arrays that write or
 * mention it. An array that mentions a name waits for earlier arrays that write it. Two arrays that mention the same
 * name run in parallel. If both create its placeholder, the unique index fails one of them, and that one is decided
 * again.
 */
export class WriteOrder {
  // An array, because the old tables of a Set would keep ended entries from being collected (db/liveness.ts).
  readonly #pending: PendingArray[] = []

  /** Waits until the items may be written. Returns a function to call when the writes end, even after an error. */
  async acquire(items: Item[]): Promise<() => void> {
    const written = new Set<string>()
    const mentioned = new Set<string>()
    for (const { write, plan, name } of items) {
      if (name !== undefined) written.add(name)
      for (const needed of requiredNames(write, plan)) mentioned.add(nameKey(needed))
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const own: PendingArray = { written, mentioned, ended }
    const before = this.#pending.filter(other => mustFollow(own, other))
    this.#pending.push(own)
    await Promise.all(before.map(other => other.ended))
    return () => {
      const index = this.#pending.indexOf(own)
      if (index !== -1) this.#pending.splice(index, 1)
      resolve()
    }
  }
}

function mustFollow(one: PendingArray, other: PendingArray): boolean {
  return !(
    one.written.isDisjointFrom(other.written) &&
    one.written.isDisjointFrom(other.mentioned) &&
    one.mentioned.isDisjointFrom(other.written)
  )
}
