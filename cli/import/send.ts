import { setTimeout as pause } from 'node:timers/promises'
import { type ImportAnswer, type ImportCounts, KithImportError } from '../../client/index.ts'
import { Attempts } from '../retry-policy.ts'
import type { Interrupt } from '../signal-handling.ts'
import { type Item, unfitRefusal } from './item.ts'
import { UnacknowledgedItems } from './unacknowledged-items.ts'

/**
 * How far an import is. The counts are of the lines that are done; `line` is the last of them. `drawn` are on their way too.
 * `leftOut` were neither sent nor refused.
 */
export type State = ImportCounts & { line: number; drawn: number; leftOut: number }

export type Sending = {
  /** In the order of the file, a piece of it at a time. */
  items: AsyncIterator<Item[]>
  /** One request: its lines, and its answer. */
  open: (lines: AsyncIterable<string>, signal: AbortSignal) => AsyncIterable<ImportAnswer>
  interrupt: Interrupt
  state: State
  /** Lines that are done, in order. */
  done: (items: Item[]) => Promise<void>
  /** The request broke, and is sent again in so many milliseconds. */
  broken: (error: Error, pauseMs: number) => void
}

/** Whoever feeds us may be slow. The service does not wait ten seconds for a line: then the next one gets a request. */
const longestIdleMs = 5_000

/**
 * Sends all items, in as many requests as it takes: one that breaks is sent again from the last line that is known to be
 * done, a bounded number of times in a row. Ends early when asked to, after the lines that were sent.
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

/** The service tells the reasons of an import's first refusals alone. */
const untold = unfitRefusal('refused, and the reason is not told of so many: mend the others, and import this file')

async function sendOnce(sending: Sending, window: UnacknowledgedItems, source: Source): Promise<void> {
  const { state } = sending
  const before = { ...state }
  const settle = async (counts: ImportCounts) => {
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
          for (let line = first; line <= last; line++) window.refuse(line, untold)
      } else await settle('progress' in answer ? answer.progress : answer)
    }
  } catch (error) {
    if (error instanceof KithImportError) await settle(error.progress)
    throw error
  }
}

/** What the last request left, then the rest of the file as the service takes it, until nothing comes or it is enough. */
async function* linesOf(sending: Sending, window: UnacknowledgedItems, source: Source): AsyncGenerator<string> {
  const { interrupt } = sending
  for (const item of window.restart()) {
    window.send(item)
    yield item.body!
  }
  while (!interrupt.asked) {
    if (window.isFull) {
      await Promise.race([window.room(), interrupt.whenAsked])
      continue
    }
    const item = source.take()
    if (item) {
      window.add(item)
      sending.state.drawn++
      if (item.body === null) continue
      window.send(item)
      yield item.body
    } else if (!(await source.refill(longestIdleMs, interrupt.whenAsked))) return
  }
}

/** The items one by one, and what came too late for one request is there for the next. */
class Source {
  readonly #batches: AsyncIterator<Item[]>
  #batch: Item[] = []
  #taken = 0
  #coming: Promise<boolean> | undefined
  isUsedUp = false

  constructor(batches: AsyncIterator<Item[]>) {
    this.#batches = batches
  }

  /** An item that is there already. */
  take(): Item | undefined {
    return this.#batch[this.#taken++]
  }

  /** Until there are more; false after the last one. */
  more(): Promise<boolean> {
    this.#coming ??= this.#batches.next().then(({ done, value }) => {
      ;[this.#batch, this.#taken, this.#coming] = [value ?? [], 0, undefined]
      this.isUsedUp = done === true
      return !this.isUsedUp
    })
    // Whoever was told to stop does not wait for it, and the file is closed.
    this.#coming.catch(() => {})
    return this.#coming
  }

  /** As `more`, but no longer than that: false, then. */
  async refill(milliseconds: number, enough: Promise<void>): Promise<boolean> {
    const timer = new AbortController()
    const idle = pause(milliseconds, false, { signal: timer.signal }).catch(() => false)
    try {
      return (await Promise.race([this.more(), idle, enough])) ?? false
    } finally {
      timer.abort()
    }
  }
}
