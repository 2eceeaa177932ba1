import { createRefusal, Fault } from '../errors.ts'
import type { Signal } from '../signal.ts'

/**
 * The purpose of a connection. `reads` are reads by identifier, or of definitions, and fast. `pages` are lists, filters and
 * related: the client determines their cost. `writes` may wait for locks.
 */
export type Lane = 'reads' | 'pages' | 'writes'

/** The slots of an organization in one lane. A statement or transaction holds one slot. */
export type Slot = {
  /** Takes a slot: at once if it returns undefined, otherwise when the promise resolves. Rejects with the signal's reason. */
  enter(signal: Signal | undefined): Promise<void> | undefined
  /** Returns a slot that was held for `heldMs`. Call it once per slot taken. */
  leave(heldMs: number): void
}

type SharesOptions = {
  connections: number
  /** A page that has waited this long is refused with 503, because too little time would be left for its request. */
  pagePatienceMs: number
  /** Called for each page that is refused. */
  onRefused: () => void
}

/**
 * The connections that an organization holds. `meanPageMs` is the moving average of the time that its pages hold a connection,
 * weighted by that time: a filter of 10 s counts as much as a thousand pages of 10 ms. Otherwise the short searches for undeclared
 * keys, one before each filter, would hide that the filters are slow.
 */
type Holding = Record<Lane, number> & { total: number; meanPageMs: number }

/** Pages are slow if they hold a connection for longer than this on average. */
const slowPageMs = 1_000
/** The moving average covers about this much time of held connections: after a page of 10 s, 1.1 s of fast pages end the limit. */
const averagedMs = 500
/** The pages of an organization are slow until they have been fast for 0.35 s of held connections. */
const firstMeanPageMs = 2 * slowPageMs

type Waiter = { lane: Lane; holding: Holding; enter(): void }

/**
 * Gives each organization a share of a pool's connections, so that other organizations always find free ones:
 * - The pages of an organization hold at most half of the connections, and so do its writes. All its work leaves a quarter free.
 * - Slow pages of an organization hold at most an eighth, because each occupies a processor core of the database.
 * - The pages of all organizations together leave a quarter free.
 *
 * Half and an eighth are at least one connection. A quarter is at least one as well, except in a pool of one. A free
 * slot goes to the waiting organization that holds the fewest connections, and within it to the first waiter whose lane
 * has room.
 */
export class Shares {
  readonly #options: SharesOptions
  readonly #max: number
  readonly #maxByLane: Record<Lane, number>
  readonly #maxSlowPages: number
  /** Entries are never removed, as with the cached definitions of an organization. */
  readonly #holdings = new Map<number, Holding>()
  /** In order of arrival. */
  readonly #waiting: Waiter[] = []
  #pages = 0

  constructor(options: SharesOptions) {
    const { connections } = options
    const half = Math.max(1, connections >> 1)
    const quarter = connections === 1 ? 0 : Math.max(1, connections >> 2)
    this.#options = options
    this.#max = connections - quarter
    this.#maxByLane = { reads: this.#max, pages: half, writes: half }
    this.#maxSlowPages = Math.max(1, connections >> 3)
  }

  /** The number of statements and transactions that wait for a slot. */
  get waiting(): number {
    return this.#waiting.length
  }

  of(organizationId: number, lane: Lane): Slot {
    const holding = this.#holdings.get(organizationId) ?? {
      reads: 0,
      pages: 0,
      writes: 0,
      total: 0,
      meanPageMs: firstMeanPageMs,
    }
    this.#holdings.set(organizationId, holding)
    return {
      enter: signal => {
        if (!this.#hasRoom(holding, lane)) return this.#wait(holding, lane, signal)
        this.#count(holding, lane, 1)
        return undefined
      },
      leave: heldMs => {
        if (lane === 'pages') holding.meanPageMs += (heldMs - holding.meanPageMs) * (heldMs / (heldMs + averagedMs))
        this.#count(holding, lane, -1)
        if (this.#waiting.length > 0) this.#admitWaiting()
      },
    }
  }

  #hasRoom(holding: Holding, lane: Lane): boolean {
    return (
      holding.total < this.#max &&
      holding[lane] < this.#maxByLane[lane] &&
      (lane !== 'pages' ||
        (this.#pages < this.#max && (holding.meanPageMs < slowPageMs || holding.pages < this.#maxSlowPages)))
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
    const { pagePatienceMs, onRefused } = this.#options
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
        onRefused()
        reject(new Fault(buildShareRefusal(pagePatienceMs)))
      })
      const timer = lane === 'pages' ? setTimeout(refuseLate, pagePatienceMs) : undefined
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiting.push(waiter)
    })
  }
}

const buildShareRefusal = (patienceMs: number) =>
  createRefusal(
    'operation_failed',
    'The running lists and filters hold all database connections that this organization may use. Retry later, or make slow filters faster with an indexed attribute.',
    { status: 503, headers: { 'Retry-After': `${Math.ceil(patienceMs / 1_000)}` } },
  )
