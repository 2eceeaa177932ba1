import { isKithError, KithConnectionError, KithError, KithTimeoutError } from '@kith/client'

type Entity = Record<string, unknown>

/** What an export needs. */
export type ExportJob = {
  fileName: string
  mediaType: string
  /** The number of all lines, as far as it is known. */
  total: number | null
  header: string
  textOf(entities: Entity[]): string
  /** Reads the entities after the one with the identifier `after`. */
  open(after: string | undefined, signal: AbortSignal): AsyncIterable<Entity>
  identify(entity: Entity): string
}

export type ExportState = {
  phase: 'running' | 'paused' | 'done' | 'cancelled' | 'failed'
  count: number
  bytes: number
  error: unknown
}

/** The entities that become one part of the file. The browser keeps its parts on disk if they need much memory. */
const batchSize = 1_000
const retryMs = 5_000

/** An export of all entities into a file that the browser saves at the end. */
export class ExportRun {
  readonly job: ExportJob
  readonly #parts: Blob[]
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  #state: ExportState = { phase: 'running', count: 0, bytes: 0, error: undefined }
  #goOn: (() => void) | undefined
  #after: string | undefined

  constructor(job: ExportJob) {
    this.job = job
    this.#parts = [new Blob([job.header])]
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly getState = (): ExportState => this.#state

  /** Resolves with the file when it is complete, with null if the export was cancelled or failed. */
  async start(): Promise<Blob | null> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      try {
        await this.#copy()
        if (signal.aborted) break
        this.#update({ phase: 'done' })
        return this.file()
      } catch (error) {
        if (signal.aborted) break
        if (!isTemporary(error)) {
          this.#update({ phase: 'failed', error })
          return null
        }
        await this.#pause(error)
      }
    }
    this.#update({ phase: 'cancelled' })
    return null
  }

  file(): Blob {
    return new Blob(this.#parts, { type: this.job.mediaType })
  }

  goOn(): void {
    this.#goOn?.()
  }

  cancel(): void {
    this.#abort.abort()
    this.#goOn?.()
  }

  async #copy(): Promise<void> {
    let batch: Entity[] = []
    const flush = () => {
      const last = batch.at(-1)
      if (!last) return
      const part = new Blob([this.job.textOf(batch)])
      this.#parts.push(part)
      this.#after = this.job.identify(last)
      this.#update({ count: this.#state.count + batch.length, bytes: this.#state.bytes + part.size })
      batch = []
    }
    try {
      for await (const entity of this.job.open(this.#after, this.#abort.signal))
        if (batch.push(entity) >= batchSize) flush()
    } finally {
      flush()
    }
  }

  async #pause(error: unknown): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#goOn = resolve
    this.#update({ phase: 'paused', error })
    const timer = setTimeout(resolve, retryMs)
    await promise
    clearTimeout(timer)
    this.#goOn = undefined
    this.#update({ phase: 'running', error: undefined })
  }

  #update(change: Partial<ExportState>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }
}

const isTemporary = (error: unknown) =>
  error instanceof KithConnectionError ||
  error instanceof KithTimeoutError ||
  (isKithError(error) && (error.status === 429 || error.status >= 500)) ||
  (error instanceof KithError && error.status === 401)
