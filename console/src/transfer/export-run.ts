import { exportAll } from '../../../transfer/export.ts'
import { Run, type RunState, startedRun } from './run.ts'

type Entity = Record<string, unknown>

/** What an export needs. */
export type ExportSource = {
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

export type ExportRunState = RunState & { count: number; bytes: number }

/** An export of all entities into a file that the browser saves at the end. The browser keeps its parts on disk if they need much memory. */
export class ExportRun extends Run<ExportRunState> {
  readonly job: ExportSource
  readonly #parts: Blob[]

  constructor(job: ExportSource) {
    super({ ...startedRun, count: 0, bytes: 0 })
    this.job = job
    this.#parts = [new Blob([job.header])]
  }

  /** Resolves with the file when it is complete, with null if the export was cancelled or failed. */
  async start(): Promise<Blob | null> {
    const { open, identify, textOf } = this.job
    await this.work(stop =>
      exportAll<Entity>({
        open: after => open(after, stop.signal),
        identify,
        write: entities => {
          const part = new Blob([textOf(entities)])
          this.#parts.push(part)
          const { count, bytes } = this.getState()
          this.update({ count: count + entities.length, bytes: bytes + part.size })
        },
        stop,
        state: { count: 0, after: undefined },
        failed: async error => void (await this.pause(error)),
      }),
    )
    return this.getState().phase === 'done' ? this.file() : null
  }

  file(): Blob {
    return new Blob(this.#parts, { type: this.job.mediaType })
  }
}
