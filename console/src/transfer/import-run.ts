import type { Definitions, MatchKind } from '@kith/client'
import { targetsOf } from '../../../transfer/columns.ts'
import { type CsvHead, cellOf } from '../../../transfer/csv.ts'
import { doneBytesOf, type ImportState, importAll, startState } from '../../../transfer/import.ts'
import type { ImportItem, RefusedItem } from '../../../transfer/item.ts'
import { refusedOf, refusedText } from '../../../transfer/refused.ts'
import type { Stop } from '../../../transfer/retry.ts'
import { EarlierLines, SharedAddresses } from '../../../transfer/shared-addresses.ts'
import { client, newKey } from '../app/client.ts'
import { type ConsentOrigin, missingEvidence, originCells } from './consent-origin.tsx'
import {
  type CsvStart,
  itemsOf,
  type Mapping,
  openFile,
  type Reading,
  type ReadOptions,
  readingOf,
  reread,
} from './file-reader.ts'
import { type RefusedLine, refusedFileText, splitRefused } from './refused-lines.ts'
import { Run, type RunState, startedRun } from './run.ts'

/** The choices before an import. */
export type ImportSetup = {
  file: File
  /** People, or the key of a stack. */
  owner: string
  options: ReadOptions
  mapping: Mapping
  match: readonly MatchKind[]
  isCreateOnly: boolean
  /** Whether people are also recognized by an address that more than ten lines share. */
  takesShared: boolean
  /** Whether consent answers without a time get the current time. */
  areAnswersOfNow: boolean
  /** Whether the elements of lists are added to the stored ones. */
  addsToLists: boolean
  origin: ConsentOrigin
  /** The country of numbers without a prefix. Null means the country of the settings. */
  phoneCountry: string | null
}

/** An import to start. `start` is null for a file of JSON lines. */
export type ImportPlan = {
  setup: ImportSetup
  definitions: Definitions
  start: CsvStart | null
  isDryRun: boolean
  /** Replacements for cells that caused many refusals, by the index of their column. */
  replacements?: Map<number, Map<string, string>>
}

export type ImportRunState = RunState &
  ImportState & {
    /** The approximate number of processed bytes of the file. */
    doneBytes: number
    /** The working time of the import in milliseconds, without its pauses. */
    workMs: number
    /** The number of stored lines whose person an earlier line had. They overwrite its values. */
    overwriting: number
    /** The number of lines with an address that too many lines share. */
    sharing: number
    refusedLines: readonly RefusedLine[]
    /** The number of refused lines that can only be downloaded. */
    furtherRefused: number
  }

/** An import of a file. A failed request is sent again until it succeeds or the import is cancelled. */
export class ImportRun extends Run<ImportRunState> {
  readonly plan: ImportPlan
  readonly #replacements: NonNullable<ImportPlan['replacements']>
  readonly #reading: Reading | null
  readonly #shared: SharedAddresses
  readonly #head: CsvHead | null
  /** The refused lines that can only be downloaded, as parts of a file. */
  readonly #further: Blob[] = []
  readonly #earlier: EarlierLines
  readonly #counts = startState()
  /** All requests have the same id, so that they form one import. */
  readonly #requestId = newKey()

  constructor(plan: ImportPlan) {
    const lines = { refusedLines: [], furtherRefused: 0 }
    super({ ...startedRun, ...startState(), doneBytes: 0, workMs: 0, overwriting: 0, sharing: 0, ...lines })
    const { start, definitions, replacements = new Map() } = plan
    const { owner, options, mapping, match, origin } = plan.setup
    const targets = targetsOf(owner, definitions)
    const constants = originCells(origin, missingEvidence(mapping, targets))
    this.plan = plan
    this.#replacements = replacements
    this.#reading = start && readingOf(start, options, mapping, targets, { constants, replacements })
    this.#shared = new SharedAddresses(match)
    this.#head = start && { cells: start.names.map(cellOf), delimiter: start.delimiter }
    this.#earlier = new EarlierLines(match)
  }

  /** The name in the file of the column with a field. A field without a column has its own name. */
  columnNameOf(field: string): string {
    const { start, setup } = this.plan
    return start?.names[setup.mapping.indexOf(field)] ?? field
  }

  /** Imports the file. Resolves when the import has ended, successfully or not. */
  start(): Promise<void> {
    return this.work(async stop => {
      const { items, readBytes } = this.#open()
      const { match, takesShared } = this.plan.setup
      // The whole file is read before it is sent, to find the addresses that many lines share.
      if (match.length > 1 && !takesShared) await this.#shared.count(this.#open().items, () => !this.isActive)
      const spared = this.#shared.spareAll(items)
      await this.#import(spared, stop, () => this.update({ doneBytes: doneBytesOf(readBytes(), this.#counts) }))
    })
  }

  /** The import after this check of the file, with the replaced cells. */
  planAfterCheck(): ImportPlan {
    return { ...this.plan, isDryRun: false, replacements: this.#replacements }
  }

  #open() {
    const { file, owner, options } = this.plan.setup
    const { pieces, readBytes } = openFile(file, options)
    return { items: itemsOf(pieces, owner, this.#reading), readBytes }
  }

  /** Sends the shown refused lines again, with their corrections. */
  async resend(): Promise<void> {
    const lines = this.getState().refusedLines
    this.#countRefused(-lines.length, [])
    let done = 0
    await this.work(async stop => {
      const read = async ({ line, content }: RefusedLine) =>
        this.#shared.spare(await reread(line, content, this.plan.setup.owner, this.#reading))
      async function* items() {
        yield await Promise.all(lines.map(read))
      }
      await this.#import(items(), stop, count => {
        done += count
      })
    })
    // Unsent lines, because the import was cancelled or refused, stay refused.
    const left = [...this.getState().refusedLines, ...lines.slice(done)]
    this.#countRefused(
      lines.length - done,
      left.sort((a, b) => a.line - b.line),
    )
  }

  mend(line: number, content: RefusedLine['content']): void {
    this.#mendEach(each => each.line === line && content)
  }

  /**
   * Replaces a cell in all refused lines with it in the column, and sends them again. An import after a check replaces
   * it too.
   */
  async replace(column: number, cell: string, other: string): Promise<void> {
    const others = this.#replacements.get(column) ?? new Map<string, string>()
    this.#replacements.set(column, others.set(cellOf(cell), cellOf(other)))
    this.#mendEach(
      ({ content }) => typeof content !== 'string' && content[column] === cell && content.with(column, other),
    )
    await this.resend()
  }

  /** Gives lines the content that `contentFor` returns, if any. */
  #mendEach(contentFor: (line: RefusedLine) => RefusedLine['content'] | false): void {
    const refusedLines = this.getState().refusedLines.map(line => {
      const content = contentFor(line)
      return content === false ? line : { ...line, content, isMended: true }
    })
    this.update({ refusedLines })
  }

  /** All refused lines. */
  refusedFile(): Blob {
    return new Blob([...refusedFileText(this.getState().refusedLines, this.#head), ...this.#further])
  }

  #import(items: AsyncIterator<ImportItem[]>, stop: Stop, onDone: (count: number) => void): Promise<void> {
    const { isDryRun, setup } = this.plan
    const { owner, match, isCreateOnly, areAnswersOfNow, addsToLists, phoneCountry } = setup
    const isMatched = match.length > 1
    const options = {
      ...{ signal: stop.signal, dryRun: isDryRun, createOnly: isCreateOnly, requestId: this.#requestId },
      ...(isMatched && { match }),
      ...(areAnswersOfNow && owner === 'people' && { consents: 'now' as const }),
      ...(addsToLists && { lists: 'add' as const }),
      ...(phoneCountry !== null && { phoneCountry }),
    }
    let startedMs = performance.now()
    return importAll({
      items,
      open: lines => client.entities(owner).import(lines, options),
      isStreamed: false,
      isRepeatable: item => isDryRun || (isMatched && !item.recognizesNobody),
      stop,
      state: this.#counts,
      done: items => {
        this.#addRefused(refusedOf(items))
        const { workMs } = this.getState()
        this.#earlier.add(items)
        const nowMs = performance.now()
        this.update({
          ...this.#counts,
          workMs: workMs + nowMs - startedMs,
          overwriting: this.#earlier.count,
          sharing: this.#shared.lines,
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

  #addRefused(items: RefusedItem[]): void {
    const { refusedLines, furtherRefused } = this.getState()
    const { fitting, further } = splitRefused(items, refusedLines)
    if (further.length > 0) this.#further.push(new Blob(refusedText(further, this.#head, false)))
    this.update({ refusedLines: [...refusedLines, ...fitting], furtherRefused: furtherRefused + further.length })
  }

  #countRefused(count: number, refusedLines: readonly RefusedLine[]): void {
    this.#counts.failed += count
    this.#counts.received += count
    this.update({ ...this.#counts, refusedLines })
  }
}
