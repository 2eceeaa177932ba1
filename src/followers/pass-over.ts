import { awaitPipelined, type Database } from '../db/db.ts'
import type { Follower, Progress } from './follower.ts'
import { insertFollowerSql, passOverSql } from './sql.ts'
import { type Found, keyOf, timeOf } from './tasks.ts'

const perTransaction = 100
const maxAgeMs = 60_000
/**
 * A position is stored when it is this many changes ahead of the stored one, so that followers repeat little work after
 * a crash.
 */
const maxAhead = 100
const maxUnstored = 1_000

/** A follower without work, with its unstored position. */
type Unstored = { found: Found; progress: Progress; sinceMs: number }

/**
 * The followers without work, by organization. kith keeps their positions in memory, so that a write without work for a
 * follower causes no further commit. Shared transactions store the positions: after a minute, after 100 changes, or
 * with the next work. After a crash, the followers check these changes again.
 */
export class PassedOver {
  readonly #db: Database
  readonly #options: { nowMs: () => number; report: (error: unknown) => void }
  readonly #unstored = new Map<string, Unstored>()

  constructor(db: Database, options: { nowMs: () => number; report: (error: unknown) => void }) {
    this.#db = db
    this.#options = options
  }

  /** The number of unstored positions, which a search finds again each time. */
  get count(): number {
    return this.#unstored.size
  }

  /**
   * Passes over the organizations where a follower has no work, which one shared statement finds out. Returns these
   * organizations, and the others with news. Organizations without news since the last time are in neither list.
   */
  async passOver(
    follower: Follower,
    found: readonly Found[],
  ): Promise<{ passed: readonly Found[]; others: readonly Found[] }> {
    if (!follower.passOver) return { passed: [], others: found }
    const news = found.map(each => this.#newsOf(each)).filter(each => each !== undefined)
    if (news.length === 0) return { passed: [], others: [] }
    try {
      const progresses = await follower.passOver(this.#db, news)
      const sinceMs = this.#options.nowMs()
      for (const each of news) {
        const [key, progress] = [keyOf(each), progresses.get(each)]
        // A task begins after the stored position.
        if (!progress) this.#unstored.delete(key)
        else this.#unstored.set(key, { found: each, sinceMs, ...this.#unstored.get(key), progress })
      }
      return { passed: news.filter(each => progresses.has(each)), others: news.filter(each => !progresses.has(each)) }
    } catch (error) {
      this.#options.report(error)
      return { passed: [], others: news }
    }
  }

  /** Returns the news since the organization was passed over, or undefined without any. */
  #newsOf(found: Found): Found | undefined {
    const key = keyOf(found)
    const last = this.#unstored.get(key)
    if (!last) return found
    const nowMs = this.#options.nowMs()
    const { sequence, notBeforeMs = 0, wakeAtMs = Infinity } = last.progress
    // Another process has worked, or the time to wake up has come.
    if (last.found.after !== found.after || last.found.is_due !== found.is_due || wakeAtMs <= nowMs) {
      this.#unstored.delete(key)
      return found
    }
    return notBeforeMs > nowMs || found.head <= sequence ? undefined : { ...found, after: sequence }
  }

  /** Stores the positions that are old enough. */
  async storeOld(): Promise<void> {
    const beforeMs = this.#options.nowMs() - maxAgeMs
    const isOld = ({ found, progress, sinceMs }: Unstored) =>
      sinceMs <= beforeMs || progress.sequence - found.after >= maxAhead
    await (this.count > maxUnstored ? this.storeAll() : this.#store([...this.#unstored.values()].filter(isOld)))
  }

  async storeAll(): Promise<void> {
    await this.#store([...this.#unstored.values()])
  }

  async #store(positions: Unstored[]): Promise<void> {
    for (const { found } of positions) this.#unstored.delete(keyOf(found))
    // Processes that insert rows in the same order may wait for each other, but never deadlock.
    positions.sort(({ found: a }, { found: b }) => a.organization_id - b.organization_id || (a.name < b.name ? -1 : 1))
    const nowMs = this.#options.nowMs()
    for (let first = 0; first < positions.length; first += perTransaction) {
      const part = positions.slice(first, first + perTransaction)
      const missing = part.filter(({ found }) => found.missing)
      const storing = this.#db.transaction(tx =>
        awaitPipelined([
          ...missing.map(({ found }) => tx.query(insertFollowerSql, [found.organization_id, found.name])),
          ...part.map(each => tx.query(passOverSql, valuesOf(each, nowMs))),
        ]),
      )
      await storing.catch(this.#options.report)
    }
  }
}

const valuesOf = ({ found, progress }: Unstored, nowMs: number) => [
  ...[found.organization_id, found.name, found.id, found.after, found.is_due, progress.sequence],
  ...[progress.notBeforeMs, progress.wakeAtMs, nowMs].map(timeOf),
]
