import { type CsvHead, cellOf } from '../../../transfer/csv.ts'
import type { Refusal, RefusedItem } from '../../../transfer/item.ts'
import { refusedText } from '../../../transfer/refused.ts'
import { shownCell } from './file-reader.ts'

/** A refused line, with content that a person can edit. */
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

/** Splits refused items into those that the page can still show and the others, so that memory stays bounded. */
export function splitRefused(items: RefusedItem[], shown: readonly RefusedLine[]) {
  const fitting: RefusedLine[] = []
  const further: RefusedItem[] = []
  let characters = shown.reduce((sum, { content }) => sum + charactersOf(content), 0)
  for (const item of items)
    if (shown.length + fitting.length < maxShownLines && characters < maxShownCharacters) {
      const content = contentOf(item)
      fitting.push({ line: item.line, refusal: item.refusal, content, isMended: false })
      characters += charactersOf(content)
    } else further.push(item)
  return { fitting, further }
}

/** Lines with their reasons, in the format of `kith import`. An import reads the corrected file. */
export const refusedFileText = (lines: readonly RefusedLine[], head: CsvHead | null) =>
  refusedText(lines.map(itemOf), head, true)

/** `/attribute_values/city` → `attribute_values.city`, like the names of columns. */
export const nameOfPath = (path: string): string => path.replace(/^\//, '').replaceAll('/', '.')
