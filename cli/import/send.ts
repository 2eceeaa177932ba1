import { setTimeout as pause } from 'node:timers/promises'
import {
  type ImportAnswer,
  type ImportCounts,
  KithConnectionError,
  KithError,
  KithImportError,
  KithTimeoutError,
} from '../../client/index.ts'
import type { Interrupt } from '../interrupt.ts'
import type { Item } from './item.ts'
import { Window } from './window.ts'

/** How far an import is. The counts are of the lines that are done; `line` is the last of them. */
export type State = ImportCounts & { line: number }

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
  broken: (error: Error, pause_ms: number) => void
}

// A service that restarts, or one that a balancer takes over from, is back within half a minute.
const most_attempts = 8
const first_pause_ms = 200
const longest_pause_ms = 10_000
/** Whoever feeds us may be slow. The service does not wait ten seconds for a line: then the next one gets a request. */
const longest_idle_ms = 5_000

/**
 * Sends all items, in as many requests as it takes: one that breaks is sent again from the last line that is known to be
 * done, up to eight times in a row without a line more. Ends early when asked to, after the lines that were sent.
 */
export async function sendAll(sending: Sending): Promise<void> {
  const { interrupt, state } = sending
  const window = new Window()
  const source = new Source(sending.items)
  for (let attempt = 1; !interrupt.asked; ) {
    const line_before = state.line
    try {
      await sendOnce(sending, window, source)
      if (source.is_used_up) return
      await Promise.race([source.more(), interrupt.whenAsked])
      attempt = 1
    } catch (error) {
      if (state.line > line_before) attempt = 1
      if (interrupt.signal.aborted || attempt++ >= most_attempts || !isPassing(error, state)) throw error
      const pause_ms = pauseAfter(error, attempt)
      sending.broken(error as Error, pause_ms)
      await Promise.race([pause(pause_ms), interrupt.whenAsked])
    }
  }
}

async function sendOnce(sending: Sending, window: Window, source: Source): Promise<void> {
  const { state } = sending
  const before = { ...state }
  const settle = async (counts: ImportCounts) => {
    const done = window.acknowledge(counts.created + counts.updated + counts.unchanged + counts.failed)
    for (const name of ['created', 'updated', 'unchanged'] as const) state[name] = before[name] + counts[name]
    state.received += done.length
    state.failed += done.filter(item => item.refusal !== undefined).length
    state.line = done.at(-1)?.line ?? state.line
    await sending.done(done)
  }
  const answers = sending.open(linesOf(sending, window, source), sending.interrupt.signal)
  try {
    for await (const answer of answers) {
      if ('line' in answer) window.refuse(answer.line, { ...answer, word: answer.error })
      else await settle('progress' in answer ? answer.progress : answer)
    }
  } catch (error) {
    if (error instanceof KithImportError) await settle(error.progress)
    throw error
  }
}

/** What the last request left, then the rest of the file as the service takes it, until nothing comes or it is enough. */
async function* linesOf({ interrupt }: Sending, window: Window, source: Source): AsyncGenerator<string> {
  for (const item of window.restart()) {
    window.send(item)
    yield item.body!
  }
  while (!interrupt.asked) {
    if (window.is_full) {
      await Promise.race([window.room(), interrupt.whenAsked])
      continue
    }
    const item = source.take()
    if (item) {
      window.add(item)
      if (item.body === null) continue
      window.send(item)
      yield item.body
    } else if (!(await source.refill(longest_idle_ms, interrupt.whenAsked))) return
  }
}

/** The items one by one, and what came too late for one request is there for the next. */
class Source {
  readonly #batches: AsyncIterator<Item[]>
  #batch: Item[] = []
  #taken = 0
  #coming: Promise<boolean> | undefined
  is_used_up = false

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
      this.is_used_up = done === true
      return !this.is_used_up
    })
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

/** Whether it is worth another attempt. A service that was never reached is more likely misspelt than away. */
function isPassing(error: unknown, state: State): boolean {
  if (error instanceof KithImportError || error instanceof KithTimeoutError) return true
  if (error instanceof KithError) return [429, 500, 503, 504].includes(error.status)
  if (!(error instanceof KithConnectionError)) return false
  if (error.status !== null) return [429, 502, 503, 504].includes(error.status)
  return state.received > 0 || causes(error).some(code => ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code))
}

function causes(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const { code } = error as NodeJS.ErrnoException
  return [...(code === undefined ? [] : [code]), ...causes(error.cause)]
}

function pauseAfter(error: unknown, attempt: number): number {
  const asked = error instanceof KithError || error instanceof KithConnectionError ? error.retry_after_seconds : null
  const growing_ms = Math.min(longest_pause_ms, first_pause_ms * 2 ** (attempt - 2))
  return Math.max((asked ?? 0) * 1_000, growing_ms)
}
