import { FairPool, type Release } from '../../process/fair-pool.ts'
import type { Signal } from '../../process/signal.ts'
import { createRefusal, Fault } from '../../values/errors.ts'
import { withTimeLimit } from '../time-limit.ts'

/**
 * The purpose of a connection. `reads` are reads by identifier, or of definitions, and are fast. `pages` are lists,
 * filters and related requests, whose cost the client determines. `writes` may wait for locks.
 */
export type Lane = 'reads' | 'pages' | 'writes'

type SharesOptions = {
  connections: number
  /** A page that has waited this long is refused with 503, because its request would have too little time left. */
  pagePatienceMs: number
  onRefused: () => void
  nowMs?: () => number
}

/** Pages are slow if they hold a connection for longer than this on average. */
const slowPageMs = 1_000
/**
 * The moving average covers about this much time of held connections: after a page of 10 s, 1.1 s of fast pages end the
 * limit.
 */
const averagedMs = 500
/** The pages of an organization count as slow until they have been fast for 0.35 s of held connections. */
const firstMeanPageMs = 2 * slowPageMs

/**
 * Gives each organization a share of a pool's connections, so that other organizations always find free ones. A
 * statement or transaction holds one connection.
 * - The pages of an organization hold at most half of the connections, and so do its writes. All its work leaves a
 *   quarter free.
 * - Slow pages of an organization hold at most an eighth, because each occupies a processor core of the database.
 * - The pages of all organizations together leave a quarter free.
 *
 * Half and an eighth are at least one connection. A quarter is at least one as well, except in a pool of one.
 */
export class ConnectionShares {
  readonly #options: SharesOptions
  readonly #whole: FairPool
  readonly #lanes: Record<Lane, FairPool>
  /**
   * The moving average of the time that an organization's pages hold a connection, weighted by that time: a filter of
   * 10 s counts as much as a thousand pages of 10 ms. Otherwise the short searches for undeclared keys, one before each
   * filter, would hide that the filters are slow. Entries are never removed, as with the cached definitions of an
   * organization.
   */
  readonly #meanPageMs = new Map<number, number>()

  constructor(options: SharesOptions) {
    const { connections } = options
    const [half, eighth] = [Math.max(1, connections >> 1), Math.max(1, connections >> 3)]
    const max = connections - (connections === 1 ? 0 : Math.max(1, connections >> 2))
    this.#options = options
    this.#whole = new FairPool({ share: max })
    const shareOfPages = (organizationId: number) => (this.#meanPageMsOf(organizationId) < slowPageMs ? half : eighth)
    this.#lanes = {
      reads: this.#whole,
      pages: this.#whole.part({ max, share: shareOfPages }),
      writes: this.#whole.part({ share: half }),
    }
  }

  /** The number of statements and transactions that wait for a connection. */
  get waiting(): number {
    return this.#whole.waiting
  }

  /** Takes a connection of the share: at once, or when the promise resolves. Rejects with the signal's reason. */
  take(organizationId: number, lane: Lane, signal: Signal | undefined): Release | Promise<Release> {
    const pool = this.#lanes[lane]
    const release = pool.tryTake(organizationId)
    if (lane !== 'pages') return release ?? pool.take(organizationId, signal)
    if (release) return this.#measure(organizationId, release)
    return this.#waitForPage(organizationId, signal).then(taken => this.#measure(organizationId, taken))
  }

  #meanPageMsOf(organizationId: number): number {
    return this.#meanPageMs.get(organizationId) ?? firstMeanPageMs
  }

  #measure(organizationId: number, release: Release): Release {
    const { nowMs = performance.now.bind(performance) } = this.#options
    const sinceMs = nowMs()
    return () => {
      const heldMs = nowMs() - sinceMs
      const meanMs = this.#meanPageMsOf(organizationId)
      this.#meanPageMs.set(organizationId, meanMs + (heldMs - meanMs) * (heldMs / (heldMs + averagedMs)))
      release()
    }
  }

  #waitForPage(organizationId: number, signal: Signal | undefined): Promise<Release> {
    const { pagePatienceMs, onRefused } = this.#options
    const take = (limited: Signal) => this.#lanes.pages.take(organizationId, limited)
    return withTimeLimit(pagePatienceMs, signal, take, () => {
      onRefused()
      return new Fault(buildShareRefusal(pagePatienceMs))
    })
  }
}

const buildShareRefusal = (patienceMs: number) =>
  createRefusal(
    'operation_failed',
    'The running lists and filters hold all database connections that this organization may use. Retry later, or make slow filters faster with an indexed attribute.',
    { status: 503, headers: { 'Retry-After': `${Math.ceil(patienceMs / 1_000)}` } },
  )
