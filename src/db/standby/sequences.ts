import { setTimeout as pause } from 'node:timers/promises'
import type { Signal } from '../../process/signal.ts'
import { NotArrived } from '../../values/errors.ts'
import type { Database } from '../db.ts'
import { readSequencesSql } from './sql.ts'

/** The pause between two polls while requests wait. One poll serves all waiting requests of all organizations. */
const pollMs = 5
/**
 * A number is read again after this time. It may not be trusted longer, because another standby may have replaced the
 * server that showed it.
 */
const trustMs = 1_000

type Waiter = { sequence: number; sinceMs: number; untilMs: number; resolve(): void; reject(error: unknown): void }

/** Lets requests wait until a server shows a change of their organization. */
export class Sequences {
  readonly #db: Database
  /**
   * The newest number of each organization, and the time of its read by performance.now(). Entries are never removed.
   */
  readonly #known = new Map<number, { sequence: number; readAtMs: number }>()
  readonly #waiters = new Map<number, Set<Waiter>>()
  #isLooking = false

  constructor(db: Database) {
    this.#db = db
  }

  /**
   * Resolves when the server shows the change `sequence`. Polls at least once. Throws {@link NotArrived} after
   * `patienceMs`, or the error of the database.
   */
  async reach(organization_id: number, sequence: number, patienceMs: number, signal: Signal): Promise<void> {
    signal.throwIfAborted()
    const known = this.#known.get(organization_id)
    if (known && known.sequence >= sequence && performance.now() - known.readAtMs < trustMs) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const sinceMs = performance.now()
    const waiter: Waiter = { sequence, sinceMs, untilMs: sinceMs + patienceMs, resolve, reject }
    const waiters = this.#waiters.get(organization_id) ?? new Set()
    this.#waiters.set(organization_id, waiters.add(waiter))
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    // The running poll may be stuck.
    const timer =
      patienceMs > 0 ? setTimeout(() => reject(this.#lateFault(organization_id, waiter)), patienceMs) : undefined
    void this.#look()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      waiters.delete(waiter)
      if (waiters.size === 0 && this.#waiters.get(organization_id) === waiters) this.#waiters.delete(organization_id)
    }
  }

  #lateFault(organization_id: number, { sequence }: Waiter) {
    const newest = this.#known.get(organization_id)?.sequence
    return new NotArrived(`Change ${sequence} has not arrived at this database yet. Retry after 1 second.`, {
      path: '/If-Sequence',
      message: `the newest change of the organization is ${newest ?? 'unknown'} here`,
    })
  }

  async #look() {
    if (this.#isLooking) return
    this.#isLooking = true
    while (this.#waiters.size > 0) {
      const startedMs = performance.now()
      const organizations = [...this.#waiters.keys()]
      try {
        type Row = { organization_id: number; sequence: number }
        const rows = await this.#db.query<Row>(readSequencesSql, [organizations])
        for (const { organization_id, sequence } of rows)
          this.#known.set(organization_id, { sequence, readAtMs: startedMs })
        for (const organization_id of organizations) this.#settle(organization_id, startedMs)
      } catch (error) {
        for (const organization_id of organizations)
          for (const waiter of this.#waiters.get(organization_id) ?? []) waiter.reject(error)
      }
      // A settled waiter is removed in a later event-loop turn.
      await pause(pollMs)
    }
    this.#isLooking = false
  }

  #settle(organization_id: number, startedMs: number) {
    const newest = this.#known.get(organization_id)?.sequence ?? -1
    for (const waiter of this.#waiters.get(organization_id) ?? [])
      if (newest >= waiter.sequence) waiter.resolve()
      // A poll that began before the request may be older than its write.
      else if (startedMs >= waiter.sinceMs && performance.now() >= waiter.untilMs)
        waiter.reject(this.#lateFault(organization_id, waiter))
  }
}
