/**
 * A record of a CSV file. `line` is its first line, counted from 1. With `fault`, its quotes are malformed: it has no
 * cells, and `text` is the whole record up to the end of the line with the fault.
 */
export type CsvRecord = { line: number; cells: string[] } | { line: number; text: string; fault: string }

const usualMaxCharacters = 16_777_216
const quote = '"'

/**
 * Splits CSV (RFC 4180) into records, without empty lines. The text comes in pieces that may end anywhere. `line` is
 * the number of the first line.
 */
export class CsvRecords {
  readonly #delimiter: string
  readonly #maxCharacters: number
  #rest = ''
  #line: number

  constructor(delimiter: string, line = 1, maxCharacters = usualMaxCharacters) {
    this.#delimiter = delimiter
    this.#line = line
    this.#maxCharacters = maxCharacters
  }

  /**
   * Adds a piece and returns the records that are now complete. Throws if a record exceeds the maximum of characters.
   */
  take(piece: string): CsvRecord[] {
    const records = this.#split(this.#rest === '' ? piece : this.#rest + piece, false)
    if (this.#rest.length > this.#maxCharacters)
      throw new Error(`The record that begins in line ${this.#line} does not end. Check for a missing closing quote.`)
    return records
  }

  /** Returns the last records. */
  last(): CsvRecord[] {
    return this.#split(this.#rest, true)
  }

  #split(text: string, isLast: boolean): CsvRecord[] {
    const records: CsvRecord[] = []
    let at = 0
    while (at < text.length) {
      const read = readRecord(text, at, this.#delimiter, isLast)
      if (read === undefined) break
      const { end, lines, ...content } = read
      const isEmpty = 'cells' in content && content.cells.length === 1 && content.cells[0] === ''
      if (!isEmpty) records.push({ line: this.#line, ...content })
      this.#line += lines
      at = end
    }
    this.#rest = text.slice(at)
    return records
  }
}

/** A record, with the offset of its end and its number of lines. */
type Read = { end: number; lines: number } & ({ cells: string[] } | { text: string; fault: string })

/** Reads the record at an offset. Undefined if more text may belong to it. */
function readRecord(text: string, start: number, delimiter: string, isLast: boolean): Read | undefined {
  const lineEnd = lineEndAt(text, start)
  const line = text.slice(start, lineEnd)
  if (!line.includes(quote)) {
    const end = nextLineAt(text, lineEnd, isLast)
    return end === undefined ? undefined : { cells: line.split(delimiter), end, lines: 1 }
  }
  const cells: string[] = []
  for (let at = start; ; at++) {
    const cell = text[at] === quote ? readQuoted(text, at) : readPlain(text, at, delimiter)
    if (cell === undefined && !isLast) return undefined
    if (cell === undefined) return malformed(text, start, text.length, 'has a quote that is not closed', isLast)
    if ('fault' in cell) return malformed(text, start, at, cell.fault, isLast)
    cells.push(cell.value)
    at = cell.end
    if (isLineEnd(text, at)) return readUntil(text, start, at, { cells }, isLast)
    if (text[at] !== delimiter) return malformed(text, start, at, afterQuote, isLast)
  }
}

const afterQuote =
  'has a character between a closing quote and the next separator. Write a quote within a cell twice, and leave out spaces around the quotes'
const beforeQuote =
  'has a cell with white space before its opening quote. Leave it out, or enclose the whole cell in quotes and write the quotes within it twice'
const escapedQuote =
  'has a quote after a backslash. Enclose the cell in quotes, and write a quote within it twice, without the backslash'

type Cell = { value: string; end: number } | { fault: string }

/** Reads a cell that begins with a quote. Undefined if the text ends before the cell does. */
function readQuoted(text: string, start: number): Cell | undefined {
  for (let at = text.indexOf(quote, start + 1); at !== -1; at = text.indexOf(quote, at + 2))
    if (text[at + 1] !== quote) return { value: text.slice(start + 1, at).replaceAll('""', quote), end: at + 1 }
  return undefined
}

/** Reads a cell that begins without a quote. A quote within it is an ordinary character. */
function readPlain(text: string, start: number, delimiter: string): Cell {
  let end = start
  while (!isLineEnd(text, end) && text[end] !== delimiter) end++
  const value = text.slice(start, end)
  if (!value.includes(quote)) return { value, end }
  if (/^\s*"/.test(value)) return { fault: beforeQuote }
  if (value.includes('\\"')) return { fault: escapedQuote }
  return { value, end }
}

function isLineEnd(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  // The code is NaN at the end of the text.
  return code === 10 || code === 13 || Number.isNaN(code)
}

function lineEndAt(text: string, start: number): number {
  let at = start
  while (!isLineEnd(text, at)) at++
  return at
}

/** The offset of the next line. Undefined if more text may belong to the line, or to its end. */
function nextLineAt(text: string, lineEnd: number, isLast: boolean): number | undefined {
  const isReturn = text[lineEnd] === '\r'
  if (!isLast && lineEnd + (isReturn ? 1 : 0) >= text.length) return undefined
  return lineEnd + (isReturn && text[lineEnd + 1] === '\n' ? 2 : 1)
}

/** Ends a record whose last line ends at an offset. */
function readUntil<T extends object>(text: string, start: number, lineEnd: number, content: T, isLast: boolean) {
  const end = nextLineAt(text, lineEnd, isLast)
  if (end === undefined) return undefined
  return { ...content, end, lines: 1 + (text.slice(start, lineEnd).match(/\r\n|\r|\n/g)?.length ?? 0) }
}

/** Ends a malformed record with the line of the fault. */
function malformed(text: string, start: number, at: number, fault: string, isLast: boolean): Read | undefined {
  const lineEnd = lineEndAt(text, at)
  return readUntil(text, start, lineEnd, { text: text.slice(start, lineEnd), fault }, isLast)
}
