import type { Signal } from './signal.ts'

/** Releases a holding. A second call does nothing. */
export type Release = () => void

type Limits<Key> = {
  /** The maximum that all organizations hold. Absent means unlimited. */
  max?: number
  /** The maximum that one organization holds. The result of a function may only increase right before a release. */
  share?: number | ((key: Key) => number)
  /**
   * Whether an organization gets more only while it holds less than the remaining room. A single organization then gets
   * half, and the next one always finds room.
   */
  leavesRoom?: boolean
}

type Waiter<Key> = { pool: FairPool<Key>; key: Key; enter(): void }

/**
 * Limits concurrent holdings, in total and by organization: connections, memory, streams, running work. Without room, a
 * request is refused ({@link FairPool.tryTake}) or waits ({@link FairPool.take}). Released room goes to the waiting
 * organization that holds the least. If several hold equally little, it goes to the one that was served longest ago.
 * Within an organization, the pool serves the first arrival that has room.
 *
 * A holding has a weight, such as bytes. A holding heavier than the remaining room is given nevertheless, because it
 * might otherwise wait forever. The limits are then exceeded by less than its weight.
 */
export class FairPool<Key = number> {
  readonly #limits: Limits<Key>
  readonly #whole: FairPool<Key> | undefined
  readonly #heldBy = new Map<Key, number>()
  #held = 0
  /** The waiters for this pool and its parts, by organization. The organization that was served last comes last. */
  readonly #waiting = new Map<Key, Set<Waiter<Key>>>()

  constructor(limits: Limits<Key>, whole?: FairPool<Key>) {
    this.#limits = limits
    this.#whole = whole
  }

  /** Makes a pool with additional limits. Its holdings also count in this pool. */
  part(limits: Limits<Key>): FairPool<Key> {
    return new FairPool(limits, this)
  }

  /** The total weight that all organizations hold. */
  get held(): number {
    return this.#held
  }

  heldBy(key: Key): number {
    return this.#heldBy.get(key) ?? 0
  }

  /** The number of waiters for this pool and its parts. */
  get waiting(): number {
    let count = 0
    for (const waiters of this.#waiting.values()) count += waiters.size
    return count
  }

  hasRoom(key: Key): boolean {
    const { max = Infinity, share = Infinity, leavesRoom = false } = this.#limits
    const held = this.heldBy(key)
    if (held >= (typeof share === 'function' ? share(key) : share)) return false
    return (leavesRoom ? held : 0) < max - this.#held && (this.#whole?.hasRoom(key) ?? true)
  }

  /** Takes immediately. Returns undefined without room. */
  tryTake(key: Key, weight = 1): Release | undefined {
    return this.hasRoom(key) ? this.#take(key, weight) : undefined
  }

  /** Takes as soon as there is room. Rejects with the signal's reason if the signal aborts first. */
  take(key: Key, signal?: Signal, weight = 1): Promise<Release> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const release = this.tryTake(key, weight)
      if (release) return resolve(release)
      const leave = this.#wait(key, () => {
        signal?.removeEventListener('abort', abort)
        resolve(this.#take(key, weight))
      })
      const abort = () => {
        leave()
        reject(signal!.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Runs `work` as soon as there is room. Rejects with the signal's reason if the signal aborts first. */
  async run<T>(key: Key, signal: Signal | undefined, work: () => Promise<T>): Promise<T> {
    const release = this.tryTake(key) ?? (await this.take(key, signal))
    try {
      return await work()
    } finally {
      release()
    }
  }

  get #outermost(): FairPool<Key> {
    return this.#whole ? this.#whole.#outermost : this
  }

  #take(key: Key, weight: number): Release {
    this.#count(key, weight)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#count(key, -weight)
      this.#outermost.#admitWaiting()
    }
  }

  #count(key: Key, by: number) {
    this.#held += by
    const held = this.heldBy(key) + by
    if (held > 0) this.#heldBy.set(key, held)
    else this.#heldBy.delete(key)
    if (this.#whole) this.#whole.#count(key, by)
  }

  /** Queues an entry, and removes it before calling `enter`. The returned function removes it too. */
  #wait(key: Key, enter: () => void): () => void {
    const waiting = this.#outermost.#waiting
    const waiters = waiting.get(key) ?? new Set()
    waiting.set(key, waiters)
    const leave = () => {
      waiters.delete(waiter)
      if (waiters.size === 0 && waiting.get(key) === waiters) waiting.delete(key)
    }
    const waiter: Waiter<Key> = {
      pool: this,
      key,
      enter: () => {
        leave()
        // The organization becomes the last of those that hold equally much.
        if (waiting.delete(key)) waiting.set(key, waiters)
        enter()
      },
    }
    waiters.add(waiter)
    return leave
  }

  #admitWaiting() {
    for (let next = this.#findNext(); next; next = this.#findNext()) next.enter()
  }

  #findNext(): Waiter<Key> | undefined {
    let next: Waiter<Key> | undefined
    for (const [key, waiters] of this.#waiting) {
      if (next && this.heldBy(key) >= this.heldBy(next.key)) continue
      let full: FairPool<Key> | undefined
      for (const waiter of waiters) {
        if (waiter.pool === full) continue
        if (waiter.pool.hasRoom(key)) {
          next = waiter
          break
        }
        full = waiter.pool
      }
    }
    return next
  }
}
