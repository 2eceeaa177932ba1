import { setTimeout as pause } from 'node:timers/promises'
import { type ImportAnswer, type ImportCounts, KithImportError } from '../../client/index.ts'
import { RetryPolicy } from '../retry-policy.ts'
import type { Interrupt } from '../signal-handling.ts'
import { buildUnfitRefusal, type ImportItem } from './item.ts'
import { UnacknowledgedItems } from './unacknowledged-items.ts'

/**
 * The progress of an import. The counts are of acknowledged items, and `line` is the last of them. `taken` counts all items
 * that were taken from the file, acknowledged or not. `leftOut` counts items that were neither sent nor refused.
 */
export type ImportState = ImportCounts & { line: number; taken: number; leftOut: number }

export type SendOptions = {
  /** The items in the order of the file, in batches. */
  items: AsyncIterator<ImportItem[]>
  /** Sends one request with these lines and returns its response. */
  open: (lines: AsyncIterable<string>, signal: AbortSignal) => AsyncIterable<ImportAnswer>
  interrupt: Interrupt
  state: ImportState
  /** Called with acknowledged items, in order. */
  done: (items: ImportItem[]) => Promise<void>
  /** Called when a request failed and is retried after `pauseMs`. */
  retrying: (error: Error, pauseMs: number) => void
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
export async function sendAll(options: SendOptions): Promise<void> {
  const { interrupt, state } = options
  const unacknowledged = new UnacknowledgedItems()
  const source = new Source(options.items)
  const retryPolicy = new RetryPolicy()
  while (!interrupt.isRequested) {
    const lineBefore = state.line
    try {
      await sendOnce(options, unacknowledged, source)
      if (source.isExhausted) return
      retryPolicy.reset()
      await Promise.race([source.more(), interrupt.whenRequested])
    } catch (error) {
      if (state.line > lineBefore) retryPolicy.reset()
      const pauseMs = interrupt.signal.aborted ? null : retryPolicy.delayAfter(error, state.received > 0)
      if (pauseMs === null) throw error
      options.retrying(error as Error, pauseMs)
      await Promise.race([pause(pauseMs), interrupt.whenRequested])
    }
  }
}

/** The service reports the reasons of only the first refusals of an import. */
const unreportedRefusal = buildUnfitRefusal(
  'refused without a reason, because there were too many; correct the others and import this file',
)

async function sendOnce(options: SendOptions, unacknowledged: UnacknowledgedItems, source: Source): Promise<void> {
  const { state } = options
  const before = { ...state }
  const acknowledge = async (counts: ImportCounts) => {
    const done = unacknowledged.acknowledge(counts.created + counts.updated + counts.unchanged + counts.failed)
    for (const name of ['created', 'updated', 'unchanged'] as const) state[name] = before[name] + counts[name]
    const leftOut = done.filter(({ body, refusal }) => body === null && !refusal).length
    state.leftOut += leftOut
    state.received += done.length - leftOut
    state.failed += done.filter(({ refusal }) => refusal).length
    state.line = done.at(-1)?.line ?? state.line
    await options.done(done)
  }
  const answers = options.open(linesOf(options, unacknowledged, source), options.interrupt.signal)
  try {
    for await (const answer of answers) {
      if ('line' in answer) unacknowledged.refuse(answer.line, { ...answer, code: answer.error })
      else if ('refused_lines' in answer) {
        for (const [first, last] of answer.refused_lines)
          for (let line = first; line <= last; line++) unacknowledged.refuse(line, unreportedRefusal)
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
async function* linesOf(
  options: SendOptions,
  unacknowledged: UnacknowledgedItems,
  source: Source,
): AsyncGenerator<string> {
  const { interrupt } = options
  for (const item of unacknowledged.restart()) {
    unacknowledged.send(item)
    yield item.body!
  }
  while (!interrupt.isRequested) {
    if (unacknowledged.isFull) {
      await Promise.race([unacknowledged.nextAcknowledgement(), interrupt.whenRequested])
      continue
    }
    const item = source.take()
    if (item) {
      unacknowledged.add(item)
      options.state.taken++
      if (item.body === null) continue
      unacknowledged.send(item)
      yield item.body
    } else if (!(await source.refill(maxIdleMs, interrupt.whenRequested))) return
  }
}

/** Yields the items one by one. A batch that arrives after the end of a request is kept for the next one. */
class Source {
  readonly #batches: AsyncIterator<ImportItem[]>
  #batch: ImportItem[] = []
  #taken = 0
  #coming: Promise<boolean> | undefined
  isExhausted = false

  constructor(batches: AsyncIterator<ImportItem[]>) {
    this.#batches = batches
  }

  /** Returns the next item that has arrived, or undefined. */
  take(): ImportItem | undefined {
    return this.#batch[this.#taken++]
  }

  /** Waits for the next batch. Resolves to false after the last one. */
  more(): Promise<boolean> {
    this.#coming ??= this.#batches.next().then(({ done, value }) => {
      ;[this.#batch, this.#taken, this.#coming] = [value ?? [], 0, undefined]
      this.isExhausted = done === true
      return !this.isExhausted
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
