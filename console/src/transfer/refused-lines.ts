import { type CsvHead, cellOf } from '../../../transfer/csv.ts'
import type { Refusal, RefusedItem } from '../../../transfer/item.ts'
import { refusedText } from '../../../transfer/refused.ts'
import { type CsvStart, shownCell } from './file-reader.ts'

/** A line that was refused, with its content as a person can change it. */
export type RefusedLine = {
  line: number
  refusal: Refusal
  /** The cells of a record, or the text of a line of JSON. */
  content: string[] | string
  isMended: boolean
}

/** The page shows and mends this many lines. The others can only be downloaded. */
const maxShownLines = 20_000
const maxShownCharacters = 8_388_608

const contentOf = ({ original }: RefusedItem): RefusedLine['content'] =>
  Array.isArray(original) ? original.map(shownCell) : new TextDecoder().decode(original)

const itemOf = ({ content, ...line }: RefusedLine): RefusedItem => ({
  ...line,
  original: typeof content === 'string' ? new TextEncoder().encode(content) : content.map(cellOf),
})

const charactersOf = (content: RefusedLine['content']) =>
  typeof content === 'string' ? content.length : content.reduce((sum, cell) => sum + cell.length, 0)

/** The refused lines of an import. Those past the first ones are kept as a file, so that memory stays bounded. */
export class RefusedLines {
  readonly #head: CsvHead | null
  #shown: readonly RefusedLine[] = []
  #characters = 0
  #further: Blob[] = []
  #furtherCount = 0

  /** `start` is null for a file of JSON lines. */
  constructor(start: CsvStart | null) {
    this.#head = start && { cells: start.names.map(cellOf), delimiter: start.delimiter }
  }

  get shown(): readonly RefusedLine[] {
    return this.#shown
  }

  /** How many lines can only be downloaded. */
  get furtherCount(): number {
    return this.#furtherCount
  }

  add(items: RefusedItem[]): void {
    const shown: RefusedLine[] = []
    const further: RefusedItem[] = []
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
    if (further.length > 0) this.#further.push(new Blob(refusedText(further, this.#head, false)))
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

  /** Replaces a cell of a column in all lines that are shown. */
  replace(column: number, cell: string, other: string): void {
    this.#shown = this.#shown.map(line =>
      typeof line.content !== 'string' && line.content[column] === cell
        ? { ...line, content: line.content.with(column, other), isMended: true }
        : line,
    )
  }

  /** All lines with their reasons, as `kith import` writes them. An import reads the file after it was corrected. */
  file(): Blob {
    return new Blob([...refusedText(this.#shown.map(itemOf), this.#head, true), ...this.#further])
  }
}

/** `/attribute_values/city` → `attribute_values.city`, as columns are named. */
export const nameOfPath = (path: string): string => path.replace(/^\//, '').replaceAll('/', '.')
