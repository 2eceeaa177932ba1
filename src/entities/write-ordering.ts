import type { Item } from './conflicts.ts'
import { nameKey, namesNeeded } from './plan-write.ts'

/** What an array of writes has to do with, and when it is over. */
type Turn = { written: Set<string>; mentioned: Set<string>; over: Promise<void> }

/**
 * Keeps the order among arrays that are written at the same time: what writes a name waits for those before it that write or
 * mention it, and what mentions one for those that write it. Two that mention one name go side by side: where
 * both bring it to life, the database makes one of them be decided again.
 */
export class Turns {
  // No Set, whose old tables would keep what is over from being forgotten (db/liveness.ts).
  readonly #taken: Turn[] = []

  /** Waits for its turn. What it returns must be called when the writes are over, come of them what may. */
  async take(items: Item[]): Promise<() => void> {
    const written = new Set<string>()
    const mentioned = new Set<string>()
    for (const { write, plan, name } of items) {
      if (name !== undefined) written.add(name)
      for (const needed of namesNeeded(write, plan)) mentioned.add(nameKey(needed))
    }
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const turn: Turn = { written, mentioned, over }
    const before = this.#taken.filter(other => isOrdered(turn, other))
    this.#taken.push(turn)
    await Promise.all(before.map(other => other.over))
    return () => {
      const index = this.#taken.indexOf(turn)
      if (index !== -1) this.#taken.splice(index, 1)
      resolve()
    }
  }
}

function isOrdered(one: Turn, other: Turn): boolean {
  return !(
    one.written.isDisjointFrom(other.written) &&
    one.written.isDisjointFrom(other.mentioned) &&
    one.mentioned.isDisjointFrom(other.written)
  )
}
