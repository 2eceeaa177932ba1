import type { QueuedItem } from '../process/observer.ts'
import { Cancellation, type Signal } from '../process/signal.ts'

/** The result of one item. `again` is true if the item may succeed in a retry without the rest of its batch. */
export type Result<O> = { outcome: O } | { error: unknown; again: boolean }

/** Runs a batch and resolves with one result per item, in order. `signal` aborts when the batch is cancelled. */
export type Run<I, O> = (items: I[], signal: Signal) => Promise<Result<O>[]>

type Arrival<I> = {
  item: I
  /** The part of `itemsLimit` that the item takes, by default 1. */
  count?: number
  bytes?: number
  signal?: Signal | undefined
}

export type QueueOptions<I, O> = {
  run: Run<I, O>
  itemsLimit: number
  bytesLimit: number
  /** A second batch starts beside the one in flight once this many items wait. By default, no second batch starts. */
  secondFrom?: number | undefined
  /**
   * True for writes: if an item's signal aborts, its batch is rolled back and runs again without the item. False for
   * reads: only the item leaves.
   */
  rollsBackOnAbort: boolean
  /** The number of items of a finished batch that settle per event-loop turn. By default, all settle in one turn. */
  maxSettledPerTurn?: number
  /** Called when a batch starts. The function that it returns is called when the batch ends. */
  watch?: ((items: readonly QueuedItem[], signal: Signal) => (() => void) | undefined) | undefined
}

/** The maximum number of concurrent separate batches, which retry failed items. */
const maxSeparate = 2

type Entry<I, O> = Arrival<I> & {
  sinceMs: number
  /**
   * Marks the entry as settled, so that it can no longer be aborted. The function that it returns settles the caller's
   * promise.
   */
  end(result: Result<O>): () => void
  batch: Batch<I, O> | undefined
}
type Batch<I, O> = { entries: Entry<I, O>[]; cancellation: Cancellation }

/**
 * Coalesces items that arrive one by one. One or two batches are in flight, and items that arrive meanwhile join the
 * next batch. There is no timer, so a lone item starts at once. The items of a failed batch run again separately, in
 * halves down to single items, while the next batches proceed.
 */
export class Queue<I, O> {
  readonly #options: QueueOptions<I, O>
  readonly #ready: Entry<I, O>[] = []
  readonly #separate: Entry<I, O>[][] = []
  #running = 0
  #runningSeparately = 0

  constructor(options: QueueOptions<I, O>) {
    this.#options = options
  }

  /**
   * Adds an item to the next batch. Rejects with the item's error, or with its signal's reason once the item can no
   * longer take effect.
   */
  add(arrival: Arrival<I>): Promise<O> {
    return new Promise((resolve, reject) => {
      const { signal } = arrival
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => this.#giveUp(entry)
      const entry: Entry<I, O> = {
        ...arrival,
        sinceMs: performance.now(),
        batch: undefined,
        end: result => {
          signal?.removeEventListener('abort', abort)
          return () => ('outcome' in result ? resolve(result.outcome) : reject(result.error))
        },
      }
      signal?.addEventListener('abort', abort)
      this.#ready.push(entry)
      this.#startNext()
    })
  }

  get idle(): boolean {
    return this.#running + this.#runningSeparately + this.waiting === 0
  }

  /** The number of items that are in no batch yet. */
  get waiting(): number {
    const queued = [this.#ready, ...this.#separate]
    return queued.reduce((sum, entries) => sum + entries.length, 0)
  }

  #startNext() {
    const minReady = this.#running === 0 ? 1 : this.#options.secondFrom
    if (minReady === undefined || this.#ready.length < minReady || this.#running === 2) return
    this.#running += 1
    void this.#runBatch(this.#takeBatch()).then(finish => {
      this.#running -= 1
      finish()
    })
  }

  #takeBatch(): Entry<I, O>[] {
    let taken = 0
    let [count, bytes] = [0, 0]
    for (const entry of this.#ready) {
      count += entry.count ?? 1
      bytes += entry.bytes ?? 0
      if (taken > 0 && (count > this.#options.itemsLimit || bytes > this.#options.bytesLimit)) break
      taken += 1
    }
    return this.#ready.splice(0, taken)
  }

  #runSeparately(entries: Entry<I, O>[]) {
    const middle = Math.ceil(entries.length / 2)
    this.#separate.push(entries.slice(0, middle), entries.slice(middle))
    this.#startSeparate()
  }

  #startSeparate() {
    while (this.#runningSeparately < maxSeparate && this.#separate.length > 0) {
      const entries = this.#separate.shift()!
      if (entries.length === 0) continue
      this.#runningSeparately += 1
      void this.#runBatch(entries).then(finish => {
        this.#runningSeparately -= 1
        finish()
        this.#startSeparate()
      })
    }
  }

  /** Runs a batch. The function that it resolves with starts the next batches, and then settles the items. */
  async #runBatch(entries: Entry<I, O>[]): Promise<() => void> {
    const batch = { entries, cancellation: new Cancellation() }
    for (const entry of entries) entry.batch = batch
    const end = this.#options.watch?.(entries, batch.cancellation)
    const results = await this.#runSafely(batch)
    end?.()
    return () => {
      const { settled, rolledBack, failed } = sortOut(batch, results)
      this.#ready.unshift(...rolledBack)
      this.#runSeparately(failed)
      // The next batch starts before the responses of this one are written: a fifth to a third more batches per second.
      this.#startNext()
      settleInParts(
        settled.map(([entry, result]) => entry.end(result)),
        this.#options.maxSettledPerTurn,
      )
    }
  }

  async #runSafely({ entries, cancellation }: Batch<I, O>): Promise<Result<O>[]> {
    try {
      return await this.#options.run(
        entries.map(({ item }) => item),
        cancellation,
      )
    } catch (error) {
      return entries.map(() => ({ error, again: entries.length > 1 || cancellation.aborted }))
    }
  }

  #giveUp(entry: Entry<I, O>) {
    const { batch } = entry
    if (!batch) this.#leave(entry)
    else if (this.#options.rollsBackOnAbort) return batch.cancellation.abort()
    else if (batch.entries.every(({ signal }) => signal?.aborted)) batch.cancellation.abort()
    entry.end({ error: entry.signal?.reason, again: false })()
  }

  #leave(entry: Entry<I, O>) {
    for (const waiting of [this.#ready, ...this.#separate])
      if (waiting.includes(entry)) waiting.splice(waiting.indexOf(entry), 1)
    this.#startNext()
  }
}

/**
 * Settles items in parts, one part per event-loop turn. Each settled item writes a response, and its client sends the
 * next request. If all items settle in one turn, the results of the next batch wait unread for that long. Parts of 8
 * give a tenth to two fifths more PATCHes per second, and an eighth to a quarter more POSTs.
 */
function settleInParts(settlers: (() => void)[], maxPerTurn = settlers.length) {
  for (const settle of settlers.slice(0, maxPerTurn)) settle()
  if (settlers.length > maxPerTurn) setImmediate(settleInParts, settlers.slice(maxPerTurn), maxPerTurn)
}

/**
 * Sorts the entries of a finished batch: settled, rolled back because another entry was aborted, and failed with a
 * separate retry.
 */
function sortOut<I, O>({ entries, cancellation }: Batch<I, O>, results: Result<O>[]) {
  const settled: [Entry<I, O>, Result<O>][] = []
  const rolledBack: Entry<I, O>[] = []
  const failed: Entry<I, O>[] = []
  for (const [index, entry] of entries.entries()) {
    const result = results[index]!
    entry.batch = undefined
    if ('outcome' in result || !result.again) settled.push([entry, result])
    else if (entry.signal?.aborted) settled.push([entry, { error: entry.signal.reason, again: false }])
    else if (cancellation.aborted) rolledBack.push(entry)
    else failed.push(entry)
  }
  return { settled, rolledBack, failed }
}
