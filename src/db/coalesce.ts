import type { Arrived } from '../observer.ts'
import { Cancellation, type Signal } from '../signal.ts'

/** What became of one item. After a failure it may be worth to try it `again`, apart from those it came with. */
export type Result<O> = { outcome: O } | { error: unknown; again: boolean }

/** Runs a batch: a result for each item, in their order. `signal` aborts when the batch must be given up. */
export type Run<I, O> = (items: I[], signal: Signal) => Promise<Result<O>[]>

export type Arrival<I> = {
  item: I
  /** Never twice in flight; those that bear one key go in order of arrival. */
  key?: string | undefined
  bytes?: number
  signal?: Signal | undefined
}

export type QueueOptions<I, O> = {
  run: Run<I, O>
  itemsLimit: number
  bytesLimit: number
  /** Beside the batch in flight a second one begins when so many wait; without it, none does. */
  secondFrom?: number | undefined
  /** A batch is undone and run again without an item whose signal aborts; where nothing is stored, the item just leaves. */
  undone: boolean
  /** How many are told what became of them before those who arrive meanwhile are listened to; absent for all. */
  toldAtOnce?: number
  /** Is told of every batch that begins, and of its end by what it returns. */
  watch?: ((arrived: readonly Arrived[], signal: Signal) => (() => void) | undefined) | undefined
}

/** Beside the batch in flight, this many run apart: what failed, and what must not be coalesced. */
const apartLimit = 2

type Entry<I, O> = Arrival<I> & {
  sinceMs: number
  /** From here on nobody gives it up any more. What it returns tells whoever waits. */
  end(result: Result<O>): () => void
  batch: Batch<I, O> | undefined
}
type Batch<I, O> = { entries: Entry<I, O>[]; cancellation: Cancellation }

/**
 * Coalesces items that arrive one by one: one batch is in flight, or two, and whoever arrives meanwhile is in the next one.
 * There is no timer: a lone item waits for nobody. Items of a batch that failed are run again apart, in halves down to
 * single ones, while the next batches go on.
 */
export class Queue<I, O> {
  readonly #options: QueueOptions<I, O>
  readonly #ready: Entry<I, O>[] = []
  /** The keys that are ready or in flight, each with those that wait behind it. */
  readonly #taken = new Map<string, Entry<I, O>[]>()
  readonly #apart: Entry<I, O>[][] = []
  #running = 0
  #running_apart = 0

  constructor(options: QueueOptions<I, O>) {
    this.#options = options
  }

  /** Joins the next batch. Rejects with the item's error, or with its signal's reason once nothing of it can happen any more. */
  add(arrival: Arrival<I>): Promise<O> {
    return enter(arrival, entry => this.#join(entry), this.#giveUp)
  }

  /** The same, but never in one batch with others. */
  addApart(arrival: Arrival<I>): Promise<O> {
    return enter({ ...arrival, key: undefined }, entry => this.#runApart([entry]), this.#giveUp)
  }

  /** Whether nobody is in it. */
  get idle(): boolean {
    return this.#running === 0 && this.#running_apart === 0 && this.#ready.length === 0 && this.#apart.length === 0
  }

  /** How many are in no batch yet. */
  get waiting(): number {
    const queued = [this.#ready, ...this.#apart, ...this.#taken.values()]
    return queued.reduce((sum, entries) => sum + entries.length, 0)
  }

  #join(entry: Entry<I, O>) {
    const behind = entry.key === undefined ? undefined : this.#taken.get(entry.key)
    if (behind) {
      behind.push(entry)
      return
    }
    if (entry.key !== undefined) this.#taken.set(entry.key, [])
    this.#ready.push(entry)
    this.#startNext()
  }

  #startNext() {
    const wanted = this.#running === 0 ? 1 : this.#options.secondFrom
    if (wanted === undefined || this.#ready.length < wanted || this.#running === 2) return
    this.#running += 1
    void this.#runBatch(this.#takeBatch()).then(finish => {
      this.#running -= 1
      finish()
    })
  }

  #takeBatch(): Entry<I, O>[] {
    let bytes = this.#ready[0]!.bytes ?? 0
    let count = 1
    for (; count < Math.min(this.#ready.length, this.#options.itemsLimit); count += 1) {
      bytes += this.#ready[count]!.bytes ?? 0
      if (bytes > this.#options.bytesLimit) break
    }
    return this.#ready.splice(0, count)
  }

  #runApart(entries: Entry<I, O>[]) {
    const middle = Math.ceil(entries.length / 2)
    this.#apart.push(entries.slice(0, middle), entries.slice(middle))
    this.#startApart()
  }

  #startApart() {
    while (this.#running_apart < apartLimit && this.#apart.length > 0) {
      const entries = this.#apart.shift()!
      if (entries.length === 0) continue
      this.#running_apart += 1
      void this.#runBatch(entries).then(finish => {
        this.#running_apart -= 1
        finish()
        this.#startApart()
      })
    }
  }

  /** Runs a batch. What it resolves with frees its keys, starts what can be started, and only then settles its items. */
  async #runBatch(entries: Entry<I, O>[]): Promise<() => void> {
    const batch = { entries, cancellation: new Cancellation() }
    for (const entry of entries) entry.batch = batch
    const end = this.#options.watch?.(entries, batch.cancellation)
    const results = await this.#runSafely(batch)
    end?.()
    return () => {
      const { settled, undone, failed } = sortOut(batch, results)
      this.#ready.unshift(...undone)
      for (const [entry] of settled) this.#free(entry)
      this.#runApart(failed)
      // The next batch is on its way before the last one's answers are written: a fifth to a third more of them a second.
      this.#startNext()
      tell(
        settled.map(([entry, result]) => entry.end(result)),
        this.#options.toldAtOnce,
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

  /** Who waited longest behind the key comes next. */
  #free({ key }: Entry<I, O>) {
    const next = key === undefined ? undefined : this.#taken.get(key)?.shift()
    if (next) this.#ready.push(next)
    else if (key !== undefined) this.#taken.delete(key)
  }

  #giveUp = (entry: Entry<I, O>) => {
    const { batch } = entry
    if (!batch) this.#leave(entry)
    else if (this.#options.undone) return batch.cancellation.abort()
    else if (batch.entries.every(({ signal }) => signal?.aborted)) batch.cancellation.abort()
    entry.end({ error: entry.signal?.reason, again: false })()
  }

  /** Takes one that waits still out of wherever it waits. */
  #leave(entry: Entry<I, O>) {
    const behind = entry.key === undefined ? undefined : this.#taken.get(entry.key)
    if (behind?.includes(entry)) {
      behind.splice(behind.indexOf(entry), 1)
      return
    }
    for (const waiting of [this.#ready, ...this.#apart])
      if (waiting.includes(entry)) waiting.splice(waiting.indexOf(entry), 1)
    this.#free(entry)
    this.#startNext()
  }
}

function enter<I, O>(
  arrival: Arrival<I>,
  start: (entry: Entry<I, O>) => void,
  giveUp: (entry: Entry<I, O>) => void,
): Promise<O> {
  return new Promise((resolve, reject) => {
    const { signal } = arrival
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => giveUp(entry)
    const { item, key, bytes = 0 } = arrival
    const entry: Entry<I, O> = {
      item,
      key,
      bytes,
      signal,
      sinceMs: performance.now(),
      batch: undefined,
      end: result => {
        signal?.removeEventListener('abort', abort)
        return () => ('outcome' in result ? resolve(result.outcome) : reject(result.error))
      },
    }
    signal?.addEventListener('abort', abort)
    start(entry)
  })
}

/**
 * Whoever is told writes an answer, and its client comes back with the next request. Where all are told in one go, that work
 * lies between the next batch and what its statements answer, which waits to be read: in parts of 8, a tenth to
 * two fifths more PATCHes a second, an eighth to a quarter more POSTs.
 */
function tell(tellings: (() => void)[], atOnce = tellings.length) {
  for (const telling of tellings.slice(0, atOnce)) telling()
  if (tellings.length > atOnce) setImmediate(tell, tellings.slice(atOnce), atOnce)
}

/** Of a batch that is over: who is done, who was undone for another's sake, and who failed and is tried again apart. */
function sortOut<I, O>({ entries, cancellation }: Batch<I, O>, results: Result<O>[]) {
  const settled: [Entry<I, O>, Result<O>][] = []
  const undone: Entry<I, O>[] = []
  const failed: Entry<I, O>[] = []
  for (const [index, entry] of entries.entries()) {
    const result = results[index]!
    entry.batch = undefined
    if ('outcome' in result || !result.again) settled.push([entry, result])
    else if (entry.signal?.aborted) settled.push([entry, { error: entry.signal.reason, again: false }])
    else if (cancellation.aborted) undone.push(entry)
    else failed.push(entry)
  }
  return { settled, undone, failed }
}
