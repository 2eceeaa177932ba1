import type { Signal } from '../signal.ts'

type Pool = { max: number; maxPerOrganization: number; used: number; byOrganization: Map<number, number> }
type Waiter = { pool: Pool; organizationId: number; enter(): void }

const newPool = (max: number, maxPerOrganization: number): Pool => ({
  max,
  maxPerOrganization,
  used: 0,
  byOrganization: new Map(),
})

/**
 * Bounds the requests of a process. Receivers that fail have slots of their own, so that those that never answer leave the other
 * ones free, and an organization holds at most a quarter.
 */
export class Slots {
  readonly #healthy: Pool
  readonly #failing: Pool
  /** In order of arrival. */
  readonly #waiting = new Set<Waiter>()

  constructor({ healthy = 256, failing = 64 } = {}) {
    this.#healthy = newPool(healthy, Math.max(1, healthy >> 2))
    this.#failing = newPool(failing, Math.max(1, failing >> 2))
  }

  /** Takes a slot. The function that it returns gives it back, once. Rejects with the signal's reason. */
  async take(organizationId: number, isFailing: boolean, signal: Signal): Promise<() => void> {
    const pool = isFailing ? this.#failing : this.#healthy
    if (this.#hasRoom(pool, organizationId)) this.#count(pool, organizationId, 1)
    else await this.#wait(pool, organizationId, signal)
    return () => {
      this.#count(pool, organizationId, -1)
      this.#admitWaiting()
    }
  }

  #hasRoom({ used, max, byOrganization, maxPerOrganization }: Pool, organizationId: number): boolean {
    return used < max && (byOrganization.get(organizationId) ?? 0) < maxPerOrganization
  }

  #count(pool: Pool, organizationId: number, by: 1 | -1) {
    pool.used += by
    const own = (pool.byOrganization.get(organizationId) ?? 0) + by
    if (own > 0) pool.byOrganization.set(organizationId, own)
    else pool.byOrganization.delete(organizationId)
  }

  #admitWaiting() {
    for (const waiter of this.#waiting) {
      if (!this.#hasRoom(waiter.pool, waiter.organizationId)) continue
      this.#count(waiter.pool, waiter.organizationId, 1)
      waiter.enter()
    }
  }

  #wait(pool: Pool, organizationId: number, signal: Signal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const settle = (act: () => void) => () => {
        this.#waiting.delete(waiter)
        signal.removeEventListener('abort', abort)
        act()
      }
      const abort = settle(() => reject(signal.reason))
      const waiter: Waiter = { pool, organizationId, enter: settle(resolve) }
      signal.addEventListener('abort', abort, { once: true })
      this.#waiting.add(waiter)
    })
  }
}
