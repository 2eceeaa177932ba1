import { stringify } from 'csv-stringify/sync'
import { type ImportItem, type Refusal, reasonColumn, reasonOf } from '../../../cli/import/item.ts'
import { withReason } from '../../../cli/import/ndjson.ts'
import { shownCell } from './file-reader.ts'

/** A line that was refused, with its content as a person can change it. */
export type RefusedLine = {
  line: number
  refusal: Refusal
  /** The cells of a record, or the text of a line of JSON. */
  content: string[] | string
  isMended: boolean
}

/** The page shows and mends this many lines. The others can only be downloaded. */
const maxShownLines = 1_000
const maxShownCharacters = 8_388_608

/** The header of a CSV file, for the download of its refused records. */
export type FileHead = { names: string[]; delimiter: string }

const contentOf = ({ original }: ImportItem): RefusedLine['content'] =>
  Array.isArray(original) ? original.map(shownCell) : new TextDecoder().decode(original)

const charactersOf = (content: RefusedLine['content']) =>
  typeof content === 'string' ? content.length : content.reduce((sum, cell) => sum + cell.length, 0)

/** The refused lines of an import. Those past the first ones are kept as a file, so that memory stays bounded. */
export class RefusedLines {
  readonly #head: FileHead | null
  #shown: readonly RefusedLine[] = []
  #characters = 0
  #further: Blob[] = []
  #furtherCount = 0

  /** `head` is null for a file of JSON lines. */
  constructor(head: FileHead | null) {
    this.#head = head
  }

  get shown(): readonly RefusedLine[] {
    return this.#shown
  }

  /** How many lines can only be downloaded. */
  get furtherCount(): number {
    return this.#furtherCount
  }

  add(items: (ImportItem & { refusal: Refusal })[]): void {
    const shown: RefusedLine[] = []
    const further: ImportItem[] = []
    for (const item of items) {
      const content = contentOf(item)
      const fits = this.#shown.length + shown.length < maxShownLines && this.#characters < maxShownCharacters
      if (fits) {
        shown.push({ line: item.line, refusal: item.refusal, content, isMended: false })
        this.#characters += charactersOf(content)
      } else further.push(item)
    }
    this.#shown = [...this.#shown, ...shown]
    this.#furtherCount += further.length
    if (further.length > 0)
      this.#further.push(new Blob(further.map(item => this.#textOf(contentOf(item), reasonOf(item as never)))))
  }

  /** Removes the shown lines and returns them, to send them again. */
  takeShown(): readonly RefusedLine[] {
    const lines = this.#shown
    this.#shown = []
    this.#characters = 0
    return lines
  }

  /** Shows lines again that were taken and not sent. */
  putBack(lines: readonly RefusedLine[]): void {
    this.#shown = [...this.#shown, ...lines].sort((a, b) => a.line - b.line)
    this.#characters += lines.reduce((sum, { content }) => sum + charactersOf(content), 0)
  }

  mend(line: number, content: RefusedLine['content']): void {
    this.#shown = this.#shown.map(each => (each.line === line ? { ...each, content, isMended: true } : each))
  }

  /** All lines with their reasons, as `kith import` writes them. An import reads the file after it was corrected. */
  file(): Blob {
    const header = this.#head ? [this.#row([reasonColumn, ...this.#head.names])] : []
    const shown = this.#shown.map(line => this.#textOf(line.content, reasonOf(line)))
    return new Blob([...header, ...shown, ...this.#further])
  }

  #textOf(content: RefusedLine['content'], reason: string): BlobPart {
    if (typeof content !== 'string') return this.#row([reason, ...content])
    return new Blob([withReason(new TextEncoder().encode(content), reason) as Uint8Array<ArrayBuffer>, '\n'])
  }

  #row(cells: string[]): string {
    return stringify([cells], { delimiter: this.#head!.delimiter })
  }
}

/** `/attribute_values/city` → `attribute_values.city`, as columns are named. */
export const nameOfPath = (path: string): string => path.replace(/^\//, '').replaceAll('/', '.')
