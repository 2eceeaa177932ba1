import type { Signal } from '../signal.ts'

type Waiter = { enter(): void }

/**
 * The requests of a process to receivers that work, or to those that fail. An organization takes a slot while it holds fewer than
 * are free, and at most a quarter of all. So those whose receivers are slow leave room for the next one: four of them hold 51
 * of 256 slots each, where a quarter each would leave none.
 */
class Pool {
  readonly #max: number
  readonly #maxPerOrganization: number
  #used = 0
  readonly #held = new Map<number, number>()
  /** The requests that wait, by organization. Among those that hold as many slots, the first one is next. */
  readonly #waiting = new Map<number, Set<Waiter>>()

  constructor(max: number) {
    this.#max = max
    this.#maxPerOrganization = Math.max(1, max >> 2)
  }

  async take(organizationId: number, signal: Signal): Promise<() => void> {
    if (this.#hasRoom(organizationId)) this.#count(organizationId, 1)
    else await this.#wait(organizationId, signal)
    return () => {
      this.#count(organizationId, -1)
      this.#admitWaiting()
    }
  }

  #heldBy(organizationId: number): number {
    return this.#held.get(organizationId) ?? 0
  }

  #hasRoom(organizationId: number): boolean {
    const held = this.#heldBy(organizationId)
    return held < this.#maxPerOrganization && held < this.#max - this.#used
  }

  #count(organizationId: number, by: 1 | -1) {
    this.#used += by
    const held = this.#heldBy(organizationId) + by
    if (held > 0) this.#held.set(organizationId, held)
    else this.#held.delete(organizationId)
  }

  /** Gives slots to the waiting organization that holds the fewest, and has waited longest among these, as long as there is room. */
  #admitWaiting() {
    for (;;) {
      let next: number | undefined
      for (const each of this.#waiting.keys())
        if (next === undefined || this.#heldBy(each) < this.#heldBy(next)) next = each
      if (next === undefined || !this.#hasRoom(next)) return
      const waiters = this.#waiting.get(next)!
      const [first] = waiters
      this.#count(next, 1)
      first!.enter()
      this.#waiting.delete(next)
      if (waiters.size > 0) this.#waiting.set(next, waiters)
    }
  }

  #wait(organizationId: number, signal: Signal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const waiters = this.#waiting.get(organizationId) ?? new Set()
      this.#waiting.set(organizationId, waiters)
      const leave = () => {
        waiters.delete(waiter)
        signal.removeEventListener('abort', abort)
      }
      const waiter: Waiter = {
        enter: () => {
          leave()
          resolve()
        },
      }
      const abort = () => {
        leave()
        if (waiters.size === 0) this.#waiting.delete(organizationId)
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      waiters.add(waiter)
    })
  }
}

/**
 * Bounds the requests of a process. Receivers that fail have slots of their own, so that those that never answer leave the other
 * ones free.
 */
export class Slots {
  readonly #healthy: Pool
  readonly #failing: Pool

  constructor({ healthy = 256, failing = 64 } = {}) {
    this.#healthy = new Pool(healthy)
    this.#failing = new Pool(failing)
  }

  /** Takes a slot. The function that it returns gives it back, once. Rejects with the signal's reason. */
  take(organizationId: number, isFailing: boolean, signal: Signal): Promise<() => void> {
    return (isFailing ? this.#failing : this.#healthy).take(organizationId, signal)
  }
}
