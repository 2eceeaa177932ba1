import { type Definitions, idOf, type Person, type StackRecord } from '@kith/client'
import { exportAll } from '../../../transfer/export.ts'
import { type CsvLook, csvShape, type ExportShape, ndjsonShape } from '../../../transfer/export-shape.ts'
import type { Format } from '../../../transfer/file.ts'
import { client } from '../app/client.ts'
import { Run, type RunState, startedRun } from './run.ts'

/** The choices before an export. */
export type ExportSetup = {
  /** People, or the key of a stack. */
  owner: string
  format: Format
  /** Only the people of this segment. */
  segment: string | null
  /** CSV for a spreadsheet instead of an import, with the reader's names, separators and decimals. */
  isForSpreadsheets: boolean
  /** Only these columns of CSV, in this order. */
  columns?: readonly string[]
  /** The entities of a list, in its order, instead of all entities. */
  list?: ExportedList
}

/** A paginated list. */
export type ExportedList = {
  count: () => Promise<number | null>
  /** Reads the next page, or the same page again after a failure. Null after the last page. */
  readNext: (options: { size: number; signal: AbortSignal }) => Promise<object[] | null>
}

type Entity = Person | StackRecord
const pageSize = 500

/** With this mark at the start, a spreadsheet reads the file as UTF-8. An import skips it. */
export const byteOrderMark = '\ufeff'

/** `total` is the number of all lines, or null if unknown. */
type ExportRunState = RunState & { total: number | null; count: number; bytes: number }

/** An export of all entities into a file that the browser saves at the end. The browser keeps a large file on disk. */
export class ExportRun extends Run<ExportRunState> {
  readonly fileName: string
  readonly #setup: ExportSetup
  readonly #shape: ExportShape
  readonly #parts: Blob[]

  /** `definitions` determine the columns of CSV. `spreadsheet` is its format if it is for a spreadsheet. */
  constructor(setup: ExportSetup, definitions: Definitions | undefined, spreadsheet: CsvLook) {
    super({ ...startedRun, total: null, count: 0, bytes: 0 })
    const { owner, format, segment, isForSpreadsheets, columns } = setup
    const look = { ...(isForSpreadsheets && spreadsheet), names: columns }
    const name = [owner, ...(segment === null ? [] : [segment]), new Date().toISOString().slice(0, 10)].join('-')
    const mark = format === 'csv' && isForSpreadsheets ? byteOrderMark : ''
    this.fileName = `${name}.${format}`
    this.#setup = setup
    this.#shape = format === 'csv' && definitions ? csvShape(owner, definitions, '|', look) : ndjsonShape
    this.#parts = [new Blob([mark + this.#shape.header])]
  }

  /** Resolves with the file when it is complete, with null if the export was cancelled or failed. */
  async start(): Promise<Blob | null> {
    await this.work(async stop => {
      this.update({ total: await this.#count().catch(() => null) })
      await exportAll<Entity>({
        open: after => this.#open(after, stop.signal),
        identify: entity => idOf(entity as Person),
        write: entities => {
          const part = new Blob([this.#shape.rowsOf(entities)])
          this.#parts.push(part)
          const { count, bytes } = this.getState()
          this.update({ count: count + entities.length, bytes: bytes + part.size })
        },
        stop,
        state: { count: 0, after: undefined },
        failed: async error => void (await this.pause(error)),
      })
    })
    return this.getState().phase === 'done' ? this.file() : null
  }

  file(): Blob {
    return new Blob(this.#parts, { type: this.#setup.format === 'csv' ? 'text/csv' : 'application/x-ndjson' })
  }

  async #count(): Promise<number | null> {
    const { owner, segment, list } = this.#setup
    if (list) return list.count()
    return (await client.entities(owner).count(segment === null ? {} : { $segment: segment })).count
  }

  /** Reads the entities after the one with the identifier `after`. */
  #open(after: string | undefined, signal: AbortSignal): AsyncIterable<Entity> {
    const { owner, segment, list } = this.#setup
    if (list) return readAll(list, signal)
    if (segment === null) return client.entities(owner).export({ after, signal }) as never
    // The API only exports all people. The pages of a segment are read in the same order.
    return client.segments.people(segment, { after, size: pageSize, order: 'asc', signal }) as never
  }
}

/**
 * Pages arrive whole, so a list continues after its last page. With its own order, no identifier marks the position.
 */
async function* readAll({ readNext }: ExportedList, signal: AbortSignal): AsyncGenerator<Entity> {
  for (;;) {
    const items = await readNext({ size: pageSize, signal })
    if (items === null) return
    yield* items as Entity[]
  }
}
