/** A line at its place in the file, counted from 1; without its text where it is longer than any may be. */
export type Line = { number: number; text: Buffer | undefined }

const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Cuts bytes into lines, as many at a time as have arrived. Blank lines are counted and left out. Of a line longer than
 * `lineBytes` no more than that is held. A line that the bytes break off in, by an error, is none.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>, lineBytes: number): AsyncGenerator<Line[]> {
  let begun: Buffer[] = []
  let begunBytes = 0
  let number = 0
  const hold = (part: Buffer) => {
    begunBytes += part.length
    // One byte more for the carriage return before a line feed.
    if (begunBytes <= lineBytes + 1) begun.push(part)
    else begun = []
  }
  const end = (): Line => {
    number += 1
    const whole = begun.length === 1 ? begun[0]! : Buffer.concat(begun)
    const text = whole.at(-1) === carriageReturn ? whole.subarray(0, -1) : whole
    const isWhole = whole.length === begunBytes && text.length <= lineBytes
    begun = []
    begunBytes = 0
    return { number, text: isWhole ? text : undefined }
  }
  for await (const chunk of chunks) {
    const lines: Line[] = []
    let at = 0
    for (let feed = chunk.indexOf(lineFeed); feed !== -1; feed = chunk.indexOf(lineFeed, at)) {
      hold(chunk.subarray(at, feed))
      const line = end()
      if (!isBlank(line)) lines.push(line)
      at = feed + 1
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
