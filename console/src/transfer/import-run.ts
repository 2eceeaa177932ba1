import type { ImportAnswer, MatchKind } from '@kith/client'
import { doneBytesOf, type ImportState, importAll, startState } from '../../../transfer/import.ts'
import type { ImportItem } from '../../../transfer/item.ts'
import { refusedOf } from '../../../transfer/refused.ts'
import type { Stop } from '../../../transfer/retry.ts'
import { EarlierLines, type SharedAddresses } from '../../../transfer/shared-addresses.ts'
import { type FileHead, type RefusedLine, RefusedLines } from './refused-lines.ts'
import { Run, type RunState, startedRun } from './run.ts'

/** What an import needs. It knows neither React nor the formats of files. */
export type ImportSource = {
  fileName: string
  /** Shown as the target: people, or the name of a stack. */
  target: string
  totalBytes: number
  isDryRun: boolean
  /** After a dry run: imports the file. */
  importAfterCheck: (() => void) | null
  head: FileHead | null
  /** The fields of the columns. Empty for a file of JSON lines. */
  fields: readonly (string | null)[]
  /** Replaces a cell of a column in lines that are read after this. */
  replaceLater(column: number, cell: string, other: string): void
  match: readonly MatchKind[]
  shared: SharedAddresses
  /** Whether a line without an `external_id` may be sent again. */
  isRepeatable: (item: ImportItem) => boolean
  /** Opens the file from its beginning. */
  open(): { items: AsyncGenerator<ImportItem[]>; readBytes(): number }
  /** Reads a mended line again. */
  reread(line: RefusedLine): ImportItem | Promise<ImportItem>
  /** Sends lines in one request, and returns its response. */
  send(lines: AsyncIterable<string>, signal: AbortSignal): AsyncIterable<ImportAnswer>
}

/** The name of the column that has a field, as the file calls it. A field of no column has its own name. */
export function columnNameOf({ head, fields }: Pick<ImportSource, 'head' | 'fields'>, field: string): string {
  return head?.names[fields.indexOf(field)] ?? field
}

export type ImportRunState = RunState &
  ImportState & {
    /** About how many bytes of the file are done. */
    doneBytes: number
    /** The time in milliseconds that the import was at work, without its pauses. */
    workMs: number
    /** Stored lines that meet the person of an earlier one, whose values they overwrite. */
    overwriting: number
    /** Lines with an address that too many lines share. */
    sharing: number
    refusedLines: readonly RefusedLine[]
    furtherRefused: number
  }

/** An import of a file. A request that fails is sent again until it succeeds or somebody cancels. */
export class ImportRun extends Run<ImportRunState> {
  readonly job: ImportSource
  readonly #refused: RefusedLines
  readonly #earlier: EarlierLines
  readonly #counts = startState()

  constructor(job: ImportSource) {
    const lines = { refusedLines: [], furtherRefused: 0 }
    super({ ...startedRun, ...startState(), doneBytes: 0, workMs: 0, overwriting: 0, sharing: 0, ...lines })
    this.job = job
    this.#refused = new RefusedLines(job.head)
    this.#earlier = new EarlierLines(job.match)
  }

  /** Imports the file. Resolves when the import has ended, however it ended. */
  start(): Promise<void> {
    return this.work(stop => {
      const { items, readBytes } = this.job.open()
      return this.#import(items, stop, () => this.update({ doneBytes: doneBytesOf(readBytes(), this.#counts) }))
    })
  }

  /** Sends the refused lines that the page shows again, with the changes that somebody made. */
  async resend(): Promise<void> {
    const lines = this.#refused.takeShown()
    this.#countRefused(-lines.length)
    let done = 0
    await this.work(async stop => {
      const { job } = this
      async function* items() {
        yield await Promise.all(lines.map(line => job.reread(line)))
      }
      await this.#import(items(), stop, count => {
        done += count
      })
    })
    // Lines that were not sent, because somebody cancelled or the service refused, stay refused.
    this.#refused.putBack(lines.slice(done))
    this.#countRefused(lines.length - done)
  }

  mend(line: number, content: RefusedLine['content']): void {
    this.#refused.mend(line, content)
    this.#show()
  }

  /** Replaces a cell in all refused lines that have it in the column, and sends them again. An import after a check replaces it too. */
  async replace(column: number, cell: string, other: string): Promise<void> {
    this.job.replaceLater(column, cell, other)
    this.#refused.replace(column, cell, other)
    await this.resend()
  }

  refusedFile(): Blob {
    return this.#refused.file()
  }

  #import(items: AsyncIterator<ImportItem[]>, stop: Stop, onDone: (count: number) => void): Promise<void> {
    const { send, isRepeatable } = this.job
    let startedMs = performance.now()
    return importAll({
      items,
      open: lines => send(lines, stop.signal),
      isStreamed: false,
      isRepeatable,
      stop,
      state: this.#counts,
      done: items => {
        this.#refused.add(refusedOf(items))
        const { workMs } = this.getState()
        this.#earlier.add(items)
        const nowMs = performance.now()
        this.#show({
          workMs: workMs + nowMs - startedMs,
          overwriting: this.#earlier.count,
          sharing: this.job.shared.lines,
        })
        startedMs = nowMs
        onDone(items.length)
      },
      failed: async (error, isDoubling) => {
        const decision = await this.pause(error, isDoubling)
        startedMs = performance.now()
        return decision
      },
    })
  }

  #countRefused(count: number): void {
    this.#counts.failed += count
    this.#counts.received += count
    this.#show()
  }

  #show(change: Partial<ImportRunState> = {}): void {
    const { shown: refusedLines, furtherCount: furtherRefused } = this.#refused
    this.update({ ...this.#counts, ...change, refusedLines, furtherRefused })
  }
}
