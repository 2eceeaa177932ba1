import {
  type ImportAnswer,
  type ImportCounts,
  KithConnectionError,
  KithError,
  KithImportError,
} from '../client/index.ts'
import { buildUnfitRefusal, type ImportItem, identifierOf } from './item.ts'
import { type Stop, startTimer } from './retry.ts'
import { UnacknowledgedItems } from './unacknowledged-items.ts'

/**
 * The progress of an import. It counts acknowledged items, and `line` is the last of them. `taken` counts all items
 * read from the file, acknowledged or not. `leftOut` counts items that were neither sent nor refused. `warnings` counts
 * the stored lines of completed requests whose mobile number is no phone number.
 */
export type ImportState = ImportCounts & { line: number; taken: number; leftOut: number; warnings: number }

export const startState = (line = 0): ImportState => ({
  ...{ received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 },
  ...{ line, taken: 0, leftOut: 0, warnings: 0 },
})

/** The estimated number of processed bytes. The reader is ahead of the acknowledged items. */
export const doneBytesOf = (readBytes: number, { received, leftOut, taken }: ImportState): number =>
  (readBytes * (received + leftOut)) / Math.max(1, taken)

export type ImportJob = {
  /** The items in the order of the file, in batches. */
  items: AsyncIterator<ImportItem[]>
  /** Sends one request with these lines and returns its response. */
  open: (lines: AsyncIterable<string>) => AsyncIterable<ImportAnswer>
  /**
   * Whether a request is sent while its lines are read. Browsers collect the lines of a request first, so they need
   * many requests.
   */
  isStreamed: boolean
  /**
   * Whether a line without an `external_id` can be sent again: in a dry run, or if email or phone identify its person.
   */
  isRepeatable: (item: ImportItem) => boolean
  stop: Stop
  state: ImportState
  /** Called with acknowledged items, in order. */
  done: (items: ImportItem[]) => void | Promise<void>
  /**
   * Called when a request failed. Resolves to send its lines again, or to leave them out as refused; rejects to end the
   * import. `isDoubling` says that sending them again could store some of them twice.
   */
  failed: (error: unknown, isDoubling: boolean) => Promise<'repeat' | 'leave out'>
}

/**
 * The limits of unacknowledged lines in a stream. They are enough for some seconds of a fast service, and need little
 * memory.
 */
const streamLimits = { maxItems: 50_000, maxBytes: 16_777_216 }
/**
 * The limits of a request that is sent at once. A response of many refusals must fit into the buffers of a connection.
 */
const requestLimits = { maxItems: 2_000, maxBytes: 2_097_152 }

/**
 * The input may be slow, and the service waits less than ten seconds for a line. After 5 idle seconds the request ends, and
 * the next line starts another one.
 */
const maxIdleMs = 5_000

/**
 * Sends all items in as many requests as needed. A failed request is sent again from the last acknowledged line. A stop
 * ends the import after the sent lines. Throws the error of the source, and the error with which `failed` ends the
 * import.
 */
export async function importAll(job: ImportJob): Promise<void> {
  const { stop, isRepeatable } = job
  const unacknowledged = new UnacknowledgedItems(job.isStreamed ? streamLimits : requestLimits)
  const source = new Source(job)
  while (!stop.isRequested) {
    if (unacknowledged.isEmpty && !(await Promise.race([source.hasMore(), stop.whenRequested]))) return
    try {
      await sendOnce(job, unacknowledged, source)
    } catch (error) {
      if (stop.signal.aborted) throw error
      const { sent } = unacknowledged
      const isDoubling = mayBeStored(error) && sent.some(item => !isRepeatable(item) && identifierOf(item) === null)
      if ((await job.failed(error, isDoubling)) === 'repeat') continue
      for (const item of sent) item.refusal = unknownOutcome
      await settle(job, unacknowledged.takeAll())
    }
  }
}

/** The service refuses a whole request before it reads a line. After a broken connection, the outcome is unknown. */
const mayBeStored = (error: unknown) =>
  error instanceof KithImportError ||
  !(error instanceof KithError || (error instanceof KithConnectionError && !error.wasSent))

const unknownOutcome = buildUnfitRefusal(
  'the connection broke while the line was stored, so it is not known whether it is. Look it up before you send it again',
)

/** The service reports the reasons of only the first refusals of an import. */
const unreportedRefusal = buildUnfitRefusal(
  'refused without a reason, because there were too many; correct the others and import this file',
)

async function sendOnce(job: ImportJob, unacknowledged: UnacknowledgedItems, source: Source): Promise<void> {
  const { state } = job
  const before = { ...state }
  const acknowledge = (counts: ImportCounts) => {
    for (const name of ['created', 'updated', 'unchanged'] as const) state[name] = before[name] + counts[name]
    const lines = counts.created + counts.updated + counts.unchanged + counts.failed
    return settle(job, unacknowledged.acknowledge(lines))
  }
  try {
    for await (const answer of job.open(linesOf(job, unacknowledged, source))) {
      if ('line' in answer) unacknowledged.refuse(answer.line, { ...answer, code: answer.error })
      else if ('refused_lines' in answer) {
        for (const [first, last] of answer.refused_lines)
          for (let line = first; line <= last; line++) unacknowledged.refuse(line, unreportedRefusal)
      } else if ('progress' in answer) await acknowledge(answer.progress)
      else {
        state.warnings += answer.warnings ?? 0
        await acknowledge(answer)
      }
    }
  } catch (error) {
    if (error instanceof KithImportError) await acknowledge(error.progress)
    throw error
  }
}

async function settle({ state, done }: ImportJob, items: ImportItem[]): Promise<void> {
  const leftOut = items.filter(({ body, refusal }) => body === null && !refusal).length
  state.leftOut += leftOut
  state.received += items.length - leftOut
  state.failed += items.filter(({ refusal }) => refusal).length
  await done(items)
  // The line is set last, because an import continues after it, and `done` may fail.
  state.line = items.at(-1)?.line ?? state.line
}

/**
 * The lines of a request: the unacknowledged lines of the last request, then the next lines of the file. The request
 * ends at the end of the file, after an idle time, or at a stop. At the limit of unacknowledged items, a stream waits,
 * and any other request ends.
 */
async function* linesOf(
  { stop, isStreamed }: ImportJob,
  unacknowledged: UnacknowledgedItems,
  source: Source,
): AsyncGenerator<string> {
  for (const item of unacknowledged.restart()) {
    unacknowledged.send(item)
    yield item.body!
  }
  while (!stop.isRequested) {
    if (unacknowledged.isFull) {
      if (!isStreamed) return
      await Promise.race([unacknowledged.nextAcknowledgement(), stop.whenRequested])
      continue
    }
    const item = source.take()
    if (item) {
      unacknowledged.add(item)
      if (item.body === null) continue
      unacknowledged.send(item)
      yield item.body
    } else if (!(await source.refill(maxIdleMs, stop.whenRequested))) return
  }
}

/** Yields single items. A batch that arrives after the end of a request is kept for the next one. */
class Source {
  readonly #job: Pick<ImportJob, 'items' | 'state'>
  #batch: ImportItem[] = []
  #taken = 0
  #coming: Promise<boolean> | undefined

  constructor(job: Pick<ImportJob, 'items' | 'state'>) {
    this.#job = job
  }

  /** Returns the next item that has arrived, or undefined. */
  take(): ImportItem | undefined {
    return this.#batch[this.#taken++]
  }

  /** Waits for the next item. Resolves to false after the last one. */
  async hasMore(): Promise<boolean> {
    while (this.#taken >= this.#batch.length) {
      this.#coming ??= this.#job.items.next().then(({ done, value }) => {
        ;[this.#batch, this.#taken, this.#coming] = [value ?? [], 0, undefined]
        this.#job.state.taken += this.#batch.length
        return done !== true
      })
      // After a stop, the promise is not awaited, and closing the file rejects it.
      this.#coming.catch(() => {})
      if (!(await this.#coming)) return false
    }
    return true
  }

  /** Waits like `hasMore`. Resolves to false after this time or when `stop` resolves. */
  async refill(milliseconds: number, stop: Promise<void>): Promise<boolean> {
    const timer = startTimer(milliseconds)
    try {
      return (await Promise.race([this.hasMore(), timer.ended, stop])) ?? false
    } finally {
      timer.cancel()
    }
  }
}
