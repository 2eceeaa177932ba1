import { yieldIfDue } from '../process/event-loop.ts'

/** A line and its number in the body, counted from 1. `text` is undefined if the line is too long. */
export type Line = { number: number; text: Buffer | undefined }

/** Splitting this many lines takes less than a millisecond. */
const linesInAStep = 256

const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Splits bytes into lines, and yields the lines that have arrived. Blank lines are numbered but omitted. At most
 * `maxLineBytes` of a line are buffered. If an error ends the bytes within a line, that line is dropped.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>, maxLineBytes: number): AsyncGenerator<Line[]> {
  let parts: Buffer[] = []
  let partBytes = 0
  let number = 0
  const hold = (part: Buffer) => {
    partBytes += part.length
    // One byte more is for the carriage return before a line feed.
    if (partBytes <= maxLineBytes + 1) parts.push(part)
    else parts = []
  }
  const end = (): Line => {
    number += 1
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    const text = whole.at(-1) === carriageReturn ? whole.subarray(0, -1) : whole
    const isWhole = whole.length === partBytes && text.length <= maxLineBytes
    parts = []
    partBytes = 0
    return { number, text: isWhole ? text : undefined }
  }
  for await (const chunk of chunks) {
    const lines: Line[] = []
    let at = 0
    for (let lineEnd = chunk.indexOf(lineFeed); lineEnd !== -1; lineEnd = chunk.indexOf(lineFeed, at)) {
      hold(chunk.subarray(at, lineEnd))
      const line = end()
      if (!isBlank(line)) lines.push(line)
      at = lineEnd + 1
      if (number % linesInAStep !== 0) continue
      await yieldIfDue()
      if (lines.length > 0) yield lines.splice(0)
    }
    if (at < chunk.length) hold(chunk.subarray(at))
    if (lines.length > 0) yield lines
  }
  const last = end()
  if (!isBlank(last)) yield [last]
}

function isBlank({ text }: Line): boolean {
  if (!text) return false
  for (const code of text) if (code !== 0x20 && code !== 0x09 && code !== carriageReturn) return false
  return true
}
