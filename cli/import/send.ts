import { setTimeout as pause } from 'node:timers/promises'
import { type ImportAnswer, type ImportCounts, KithImportError } from '../../client/index.ts'
import { Attempts } from '../retry-policy.ts'
import type { Interrupt } from '../signal-handling.ts'
import { type Item, unfitRefusal } from './item.ts'
import { UnacknowledgedItems } from './unacknowledged-items.ts'

/**
 * The progress of an import. The counts are of acknowledged items, and `line` is the last of them. `drawn` counts all items
 * that were taken from the file, acknowledged or not. `leftOut` counts items that were neither sent nor refused.
 */
export type State = ImportCounts & { line: number; drawn: number; leftOut: number }

export type Sending = {
  /** The items in the order of the file, in batches. */
  items: AsyncIterator<Item[]>
  /** Sends one request with these lines and returns its response. */
  open: (lines: AsyncIterable<string>, signal: AbortSignal) => AsyncIterable<ImportAnswer>
  interrupt: Interrupt
  state: State
  /** Called with acknowledged items, in order. */
  done: (items: Item[]) => Promise<void>
  /** Called when a request failed and is retried after `pauseMs`. */
  broken: (error: Error, pauseMs: number) => void
}

/**
 * The input may be slow, and the service waits less than ten seconds for a line. After 5 idle seconds the request ends, and
 * the next line starts another one.
 */
const maxIdleMs = 5_000

/**
 * Sends all items in as many requests as needed. A request that fails is retried from the last acknowledged line, a bounded
 * number of times in a row. An interrupt ends the import after the lines that were sent. Throws the last error.
 */
export async function sendAll(sending: Sending): Promise<void> {
  const { interrupt, state } = sending
  const window = new UnacknowledgedItems()
  const source = new Source(sending.items)
  const attempts = new Attempts()
  while (!interrupt.asked) {
    const lineBefore = state.line
    try {
      await sendOnce(sending, window, source)
      if (source.isUsedUp) return
      attempts.succeed()
      await Promise.race([source.more(), interrupt.whenAsked])
    } catch (error) {
      if (state.line > lineBefore) attempts.succeed()
      const pauseMs = interrupt.signal.aborted ? null : attempts.pauseAfter(error, state.received > 0)
      if (pauseMs === null) throw error
      sending.broken(error as Error, pauseMs)
      await Promise.race([pause(pauseMs), interrupt.whenAsked])
    }
  }
}

/** The service reports the reasons of only the first refusals of an import. */
const unreportedRefusal = unfitRefusal(
  'refused without a reason, because there were too many; correct the others and import this file',
)

async function sendOnce(sending: Sending, window: UnacknowledgedItems, source: Source): Promise<void> {
  const { state } = sending
  const before = { ...state }
  const acknowledge = async (counts: ImportCounts) => {
    const done = window.acknowledge(counts.created + counts.updated + counts.unchanged + counts.failed)
    for (const name of ['created', 'updated', 'unchanged'] as const) state[name] = before[name] + counts[name]
    const leftOut = done.filter(({ body, refusal }) => body === null && !refusal).length
    state.leftOut += leftOut
    state.received += done.length - leftOut
    state.failed += done.filter(({ refusal }) => refusal).length
    state.line = done.at(-1)?.line ?? state.line
    await sending.done(done)
  }
  const answers = sending.open(linesOf(sending, window, source), sending.interrupt.signal)
  try {
    for await (const answer of answers) {
      if ('line' in answer) window.refuse(answer.line, { ...answer, word: answer.error })
      else if ('refused_lines' in answer) {
        for (const [first, last] of answer.refused_lines)
          for (let line = first; line <= last; line++) window.refuse(line, unreportedRefusal)
      } else await acknowledge('progress' in answer ? answer.progress : answer)
    }
  } catch (error) {
    if (error instanceof KithImportError) await acknowledge(error.progress)
    throw error
  }
}

/**
 * The lines of a request: those that the last request left unacknowledged, then the next ones of the file. It ends at the end
 * of the file, after an idle time, or at an interrupt. It waits while too many items are unacknowledged.
 */
async function* linesOf(sending: Sending, window: UnacknowledgedItems, source: Source): AsyncGenerator<string> {
  const { interrupt } = sending
  for (const item of window.restart()) {
    window.send(item)
    yield item.body!
  }
  while (!interrupt.asked) {
    if (window.isFull) {
      await Promise.race([window.nextAcknowledgement(), interrupt.whenAsked])
      continue
    }
    const item = source.take()
    if (item) {
      window.add(item)
      sending.state.drawn++
      if (item.body === null) continue
      window.send(item)
      yield item.body
    } else if (!(await source.refill(maxIdleMs, interrupt.whenAsked))) return
  }
}

/** Yields the items one by one. A batch that arrives after the end of a request is kept for the next one. */
class Source {
  readonly #batches: AsyncIterator<Item[]>
  #batch: Item[] = []
  #taken = 0
  #coming: Promise<boolean> | undefined
  isUsedUp = false

  constructor(batches: AsyncIterator<Item[]>) {
    this.#batches = batches
  }

  /** Returns the next item that has arrived, or undefined. */
  take(): Item | undefined {
    return this.#batch[this.#taken++]
  }

  /** Waits for the next batch. Resolves to false after the last one. */
  more(): Promise<boolean> {
    this.#coming ??= this.#batches.next().then(({ done, value }) => {
      ;[this.#batch, this.#taken, this.#coming] = [value ?? [], 0, undefined]
      this.isUsedUp = done === true
      return !this.isUsedUp
    })
    // After an interrupt the promise is not awaited, and closing the file rejects it.
    this.#coming.catch(() => {})
    return this.#coming
  }

  /** Waits as `more` does. Resolves to false after this time or when `stop` resolves. */
  async refill(milliseconds: number, stop: Promise<void>): Promise<boolean> {
    const timer = new AbortController()
    const idle = pause(milliseconds, false, { signal: timer.signal }).catch(() => false)
    try {
      return (await Promise.race([this.more(), idle, stop])) ?? false
    } finally {
      timer.abort()
    }
  }
}
