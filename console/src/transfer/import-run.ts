import { type ImportAnswer, KithConnectionError, KithError, KithImportError, KithTimeoutError } from '@kith/client'
import { buildUnfitRefusal, type ImportItem, type Refusal } from '../../../cli/import/item.ts'
import { type FileHead, type RefusedLine, RefusedLines } from './refused-lines.ts'

/** What an import needs. It knows neither React nor the formats of files. */
export type ImportJob = {
  fileName: string
  /** Shown as the target: people, or the name of a stack. */
  target: string
  totalBytes: number
  isDryRun: boolean
  /** After a dry run: imports the file. */
  importAfterCheck: (() => void) | null
  head: FileHead | null
  /** Whether a line without an `external_id` may be sent again, because people are recognized by email or phone. */
  isMatching: boolean
  /** Opens the file from its beginning. */
  open(): { items: AsyncGenerator<ImportItem[]>; readBytes(): number }
  /** Reads a mended line again. */
  reread(line: RefusedLine): ImportItem | Promise<ImportItem>
  /** Sends lines in one request, and returns its response. */
  send(lines: string[], signal: AbortSignal): AsyncIterable<ImportAnswer>
}

export type Counts = { received: number; created: number; updated: number; unchanged: number; refused: number }

/** Why an import waits. `isDoubling` says that sending the lines again could store some of them twice. */
export type Pause = { error: unknown; isDoubling: boolean; isAutomatic: boolean }

export type RunState = Counts & {
  phase: 'running' | 'paused' | 'done' | 'cancelled' | 'failed'
  /** About how many bytes of the file are done. */
  doneBytes: number
  /** The time in milliseconds that the import was at work, without its pauses. */
  workMs: number
  /** Lines that were neither sent nor refused: the placeholders of an exported file. */
  skipped: number
  /** Stored lines with the `external_id` of an earlier one, whose values they overwrite. */
  overwriting: number
  pause: Pause | null
  error: unknown
  refusedLines: readonly RefusedLine[]
  furtherRefused: number
}

/**
 * A request has at most this many lines and characters. A browser sends a request whole and then reads its response, so a
 * response of many refusals must fit into the buffers of a connection.
 */
const maxLines = 2_000
const maxCharacters = 1_048_576

/** An import that waits goes on by itself after this time. */
const retryMs = 5_000

/** An import of a file, slice by slice. A slice that fails is sent again until it succeeds or somebody cancels. */
export class ImportRun {
  readonly job: ImportJob
  readonly #refused: RefusedLines
  readonly #listeners = new Set<() => void>()
  #abort = new AbortController()
  #state: RunState
  #decide: ((decision: 'repeat' | 'leave out') => void) | undefined
  readonly #identifiers = new Set<string>()

  constructor(job: ImportJob) {
    this.job = job
    this.#refused = new RefusedLines(job.head)
    const counts = { received: 0, created: 0, updated: 0, unchanged: 0, refused: 0, skipped: 0, overwriting: 0 }
    const lines = { refusedLines: [], furtherRefused: 0 }
    this.#state = { phase: 'running', doneBytes: 0, workMs: 0, pause: null, error: undefined, ...counts, ...lines }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly getState = (): RunState => this.#state

  get isActive(): boolean {
    return this.#state.phase === 'running' || this.#state.phase === 'paused'
  }

  /** Imports the file. Resolves when the import has ended, however it ended. */
  start(): Promise<void> {
    return this.#work(async () => {
      const { items, readBytes } = this.job.open()
      let taken = 0
      async function* counted() {
        for await (const batch of items) {
          taken += batch.length
          yield batch
        }
      }
      for await (const slice of slicesOf(counted())) {
        if (this.#abort.signal.aborted) return
        await this.#importSlice(slice)
        // The browser reads far ahead of what has been sent.
        const { received, skipped } = this.#state
        this.#update({ doneBytes: (readBytes() * (received + skipped)) / taken })
      }
    })
  }

  /** Sends the refused lines that the page shows again, with the changes that somebody made. */
  async resend(): Promise<void> {
    const lines = this.#refused.takeShown()
    this.#countRefused(-lines.length)
    let done = 0
    await this.#work(async () => {
      const items = await Promise.all(lines.map(line => this.job.reread(line)))
      async function* batches() {
        yield items
      }
      for await (const slice of slicesOf(batches())) {
        if (!(await this.#importSlice(slice))) return
        done += slice.length
      }
    })
    // Lines that were not sent, because somebody cancelled or the service refused, stay refused.
    this.#refused.putBack(lines.slice(done))
    this.#countRefused(lines.length - done)
  }

  #countRefused(count: number): void {
    this.#update({ refused: this.#state.refused + count, received: this.#state.received + count })
  }

  mend(line: number, content: RefusedLine['content']): void {
    this.#refused.mend(line, content)
    this.#update({})
  }

  /** Ends a pause: sends the slice again, or reports its lines as refused. */
  goOn(decision: 'repeat' | 'leave out' = 'repeat'): void {
    this.#decide?.(decision)
  }

  /** Ends the import. The lines that were sent stay stored. */
  cancel(): void {
    this.#abort.abort()
    this.#decide?.('repeat')
  }

  refusedFile(): Blob {
    return this.#refused.file()
  }

  async #work(work: () => Promise<void>): Promise<void> {
    this.#abort = new AbortController()
    this.#update({ phase: 'running', error: undefined })
    try {
      await work()
      this.#update({ phase: this.#abort.signal.aborted ? 'cancelled' : 'done' })
    } catch (error) {
      this.#update({ phase: this.#abort.signal.aborted ? 'cancelled' : 'failed', error })
    }
  }

  /** Returns false if the import was cancelled before the slice was sent. */
  async #importSlice(items: ImportItem[]): Promise<boolean> {
    const sent = items.filter(({ body }) => body !== null)
    const counts = sent.length === 0 ? noCounts : await this.#sendUntilAnswered(sent)
    if (!counts) return false
    const refused = items.filter((item): item is ImportItem & { refusal: Refusal } => item.refusal !== undefined)
    const skipped = items.filter(({ body, refusal }) => body === null && !refusal).length
    this.#refused.add(refused)
    const state = this.#state
    this.#update({
      received: state.received + items.length - skipped,
      created: state.created + counts.created,
      updated: state.updated + counts.updated,
      unchanged: state.unchanged + counts.unchanged,
      refused: state.refused + refused.length,
      skipped: state.skipped + skipped,
      overwriting: state.overwriting + this.#countOverwriting(sent),
    })
    return true
  }

  #countOverwriting(sent: ImportItem[]): number {
    const before = this.#identifiers.size
    const identifiers = sent.filter(({ refusal }) => !refusal).map(identifierOf)
    const named = identifiers.filter(identifier => identifier !== null)
    for (const identifier of named) this.#identifiers.add(identifier)
    return named.length - (this.#identifiers.size - before)
  }

  /** Sends the lines until a request succeeds, and notes their refusals. Returns undefined if the import was cancelled. */
  async #sendUntilAnswered(items: ImportItem[]): Promise<Stored | undefined> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      try {
        return await this.#send(items)
      } catch (error) {
        if (signal.aborted) return undefined
        if (!isTemporary(error)) throw error
        const isDoubling = mayBeStored(error) && !this.job.isDryRun && !this.job.isMatching && items.some(isNameless)
        if ((await this.#pause({ error, isDoubling, isAutomatic: !isDoubling && !isSignedOut(error) })) === 'repeat')
          continue
        for (const item of items) item.refusal = unknownOutcome
        return noCounts
      }
    }
    return undefined
  }

  async #send(items: ImportItem[]): Promise<Stored> {
    // The service decides again about a line that an earlier request refused.
    for (const item of items) delete item.refusal
    const answers = this.job.send(
      items.map(({ body }) => body!),
      this.#abort.signal,
    )
    const startedMs = performance.now()
    let stored: Stored | undefined
    for await (const answer of answers) {
      if ('line' in answer) items[answer.line - 1]!.refusal = { ...answer, code: answer.error }
      else if ('refused_lines' in answer)
        for (const [first, last] of answer.refused_lines)
          for (let line = first; line <= last; line++) items[line - 1]!.refusal = unreportedRefusal
      else if ('received' in answer) stored = answer
    }
    this.#update({ workMs: this.#state.workMs + performance.now() - startedMs })
    return stored!
  }

  async #pause(pause: Pause): Promise<'repeat' | 'leave out'> {
    const { promise, resolve } = Promise.withResolvers<'repeat' | 'leave out'>()
    this.#decide = resolve
    this.#update({ phase: 'paused', pause })
    const goOn = () => resolve('repeat')
    const timer = pause.isAutomatic ? setTimeout(goOn, retryMs) : undefined
    if (pause.isAutomatic) window.addEventListener('online', goOn)
    const decision = await promise
    clearTimeout(timer)
    window.removeEventListener('online', goOn)
    this.#decide = undefined
    this.#update({ phase: 'running', pause: null })
    return decision
  }

  #update(change: Partial<RunState>): void {
    const lines = { refusedLines: this.#refused.shown, furtherRefused: this.#refused.furtherCount }
    this.#state = { ...this.#state, ...change, ...lines }
    for (const listener of this.#listeners) listener()
  }
}

type Stored = { created: number; updated: number; unchanged: number }
const noCounts: Stored = { created: 0, updated: 0, unchanged: 0 }

const unreportedRefusal = buildUnfitRefusal('refused without a reason, because there were too many')
const unknownOutcome = buildUnfitRefusal(
  'the connection broke while the line was stored, so it is not known whether it is. Look it up before you send it again',
)

/** Whether a later attempt can succeed. */
function isTemporary(error: unknown): boolean {
  if (error instanceof KithImportError || error instanceof KithConnectionError || error instanceof KithTimeoutError)
    return true
  return error instanceof KithError && (error.status >= 500 || error.status === 429 || isSignedOut(error))
}

const isSignedOut = (error: unknown) => error instanceof KithError && error.status === 401

/** A refusal of the whole request comes before any line is read. After a broken connection, nobody knows. */
const mayBeStored = (error: unknown) => error instanceof KithImportError || !(error instanceof KithError)

/** A line without an `external_id` creates an entity each time it is sent. */
const isNameless = (item: ImportItem) => identifierOf(item) === null

/** The `external_id` of a line. The service refuses a line that is not JSON, so such a line has none that counts. */
function identifierOf({ body }: ImportItem): string | null {
  try {
    const { external_id = null } = (JSON.parse(body!) ?? {}) as { external_id?: unknown }
    return external_id === null ? null : String(external_id).trim()
  } catch {
    return ''
  }
}

async function* slicesOf(batches: AsyncIterable<ImportItem[]>): AsyncGenerator<ImportItem[]> {
  let slice: ImportItem[] = []
  let characters = 0
  for await (const items of batches)
    for (const item of items) {
      const length = item.body?.length ?? 0
      if (slice.length > 0 && (slice.length >= maxLines || characters + length > maxCharacters)) {
        yield slice
        slice = []
        characters = 0
      }
      slice.push(item)
      characters += length
    }
  if (slice.length > 0) yield slice
}
