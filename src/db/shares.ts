import { Fault, refuse } from '../errors.ts'
import type { Signal } from '../signal.ts'

/**
 * What a connection is wanted for. `reads` are by identifier, or of definitions, and quick. `pages` are lists, filters and
 * related: their cost is the client's choice. `writes` may wait for locks.
 */
export type Lane = 'reads' | 'pages' | 'writes'

/** The place of one statement or transaction among those of its organization. */
export type Place = {
  /** Takes a place: at once where it returns undefined, else when the promise resolves. Rejects with the signal's reason. */
  enter(signal: Signal | undefined): Promise<void> | undefined
  /** Gives the place back, once for each that was taken. */
  leave(): void
}

type SharesOptions = {
  connections: number
  /** A page that has waited this long is refused with 503, because little of its request's time would be left. */
  pagePatienceMs: number
  /** Called for each page that is refused. */
  refused: () => void
}

/** The connections that an organization holds. */
type Holding = Record<Lane, number> & { total: number }

type Waiter = { lane: Lane; holding: Holding; enter(): void }

/**
 * Gives each organization a share of a pool's connections, so that others always find some:
 * - pages hold at most half of the connections, and so do writes; all work of an organization together leaves a quarter;
 * - the pages of all organizations together leave a quarter.
 *
 * Half is at least one connection. A quarter is at least one, too, except of a pool of one. A free place goes to the waiting
 * organization that holds the fewest connections, and within it to the first that came and may go.
 */
export class Shares {
  readonly #options: SharesOptions
  readonly #most: number
  readonly #mostOf: Record<Lane, number>
  /** Kept for good, as an organization's definitions are. */
  readonly #holdings = new Map<number, Holding>()
  /** In order of arrival. */
  readonly #waiting: Waiter[] = []
  #pages = 0

  constructor(options: SharesOptions) {
    const { connections } = options
    const half = Math.max(1, connections >> 1)
    const quarter = connections === 1 ? 0 : Math.max(1, connections >> 2)
    this.#options = options
    this.#most = connections - quarter
    this.#mostOf = { reads: this.#most, pages: half, writes: half }
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#waiting.length
  }

  of(organizationId: number, lane: Lane): Place {
    const holding = this.#holdings.get(organizationId) ?? { reads: 0, pages: 0, writes: 0, total: 0 }
    this.#holdings.set(organizationId, holding)
    return {
      enter: signal => {
        if (!this.#hasRoom(holding, lane)) return this.#wait(holding, lane, signal)
        this.#count(holding, lane, 1)
        return undefined
      },
      leave: () => {
        this.#count(holding, lane, -1)
        if (this.#waiting.length > 0) this.#admitWaiting()
      },
    }
  }

  #hasRoom(holding: Holding, lane: Lane): boolean {
    return (
      holding.total < this.#most && holding[lane] < this.#mostOf[lane] && (lane !== 'pages' || this.#pages < this.#most)
    )
  }

  #count(holding: Holding, lane: Lane, by: 1 | -1) {
    holding[lane] += by
    holding.total += by
    if (lane === 'pages') this.#pages += by
  }

  #admitWaiting() {
    for (let next = this.#findNext(); next; next = this.#findNext()) {
      this.#count(next.holding, next.lane, 1)
      next.enter()
    }
  }

  #findNext(): Waiter | undefined {
    let next: Waiter | undefined
    for (const waiter of this.#waiting)
      if (this.#hasRoom(waiter.holding, waiter.lane) && (!next || waiter.holding.total < next.holding.total))
        next = waiter
    return next
  }

  #wait(holding: Holding, lane: Lane, signal: Signal | undefined): Promise<void> {
    const { pagePatienceMs, refused } = this.#options
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const settle = (act: () => void) => () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        act()
      }
      const waiter: Waiter = { lane, holding, enter: settle(resolve) }
      const abort = settle(() => reject(signal?.reason))
      const refuseLate = settle(() => {
        refused()
        reject(new Fault(pagesTakeAll(pagePatienceMs)))
      })
      const timer = lane === 'pages' ? setTimeout(refuseLate, pagePatienceMs) : undefined
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiting.push(waiter)
    })
  }
}

const pagesTakeAll = (patienceMs: number) =>
  refuse(
    'operation_failed',
    'Other lists and filters hold the database connections that this organization may have. Retry later, or make slow filters faster by an indexed attribute.',
    { status: 503, headers: { 'Retry-After': `${Math.ceil(patienceMs / 1_000)}` } },
  )
