import { isUtf8 } from 'node:buffer'
import { writable } from '../../client/index.ts'
import { type Item, type Refusal, unfitRefusal } from './item.ts'

/** More than any service takes of one entity; a longer line is not even held. */
const longestLineBytes = 16_777_216
const shownBytes = 1_000

/** The lines that are not blank, each with the JSON that is to be sent: its own, but for reads and refused lines. */
export async function* ndjsonItems(pieces: AsyncIterable<Buffer>, owner: string): AsyncGenerator<Item[]> {
  const lines = new Lines()
  for await (const piece of pieces) yield itemsOf(lines.take(piece), owner)
  yield itemsOf(lines.last(), owner)
}

function itemsOf(lines: Line[], owner: string): Item[] {
  return lines.flatMap(({ line, bytes, cut }): Item[] => {
    const refused = (message: string) => [{ line, body: null, original: bytes, refusal: unfitRefusal(message) }]
    if (cut) return refused(`has more than ${longestLineBytes} bytes`)
    if (!isUtf8(bytes)) return refused('is not UTF-8')
    const text = withoutReason(bytes.toString()).trim()
    return text === '' ? [] : [{ line, original: bytes, ...bodyOf(text, owner) }]
  })
}

type Line = { line: number; bytes: Buffer; cut: boolean }

/** Puts lines together from pieces. Of one that is too long it keeps the beginning alone. */
class Lines {
  #line = 1
  #parts: Buffer[] = []
  #bytes = 0
  #cut = false

  take(piece: Buffer): Line[] {
    const lines = []
    let start = 0
    for (let end = piece.indexOf(10); end !== -1; end = piece.indexOf(10, start)) {
      this.#hold(piece.subarray(start, end))
      lines.push(this.#end())
      start = end + 1
    }
    if (start < piece.length) this.#hold(piece.subarray(start))
    return lines
  }

  last(): Line[] {
    return this.#bytes > 0 ? [this.#end()] : []
  }

  #hold(part: Buffer) {
    this.#bytes += part.length
    this.#cut ||= this.#bytes > longestLineBytes
    this.#parts.push(part)
    if (this.#cut) this.#parts = [Buffer.concat(this.#parts).subarray(0, shownBytes)]
  }

  #end(): Line {
    const bytes = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    const ended = { line: this.#line++, bytes, cut: this.#cut }
    ;[this.#parts, this.#bytes, this.#cut] = [[], 0, false]
    return ended
  }
}

/** A refused line has its reason as the first field, or before it where the line is no object. */
export function withReason(original: Buffer, reason: string): Buffer {
  const head = `{"refused_because":${JSON.stringify(reason)}`
  const body = /^\s*\{\s*/.exec(original.toString('latin1', 0, shownBytes))
  if (!body) return Buffer.concat([Buffer.from(`${head}} `), original])
  const rest = original.subarray(body[0].length)
  return Buffer.concat([Buffer.from(rest[0] === 0x7d ? head : `${head},`), rest])
}

const reasonOfOld = /^\s*\{\s*"refused_because"\s*:\s*"(?:[^"\\]|\\.)*"\s*([,}])/

/** The line as it was before it was refused, or as it was mended since. */
export function withoutReason(text: string): string {
  const [reason, end] = reasonOfOld.exec(text) ?? []
  if (reason === undefined) return text
  const rest = text.slice(reason.length)
  if (end === ',') return `{${rest}`
  return rest.trim() === '' ? '{}' : rest
}

type Sent = { body: string } | { body: null; refusal?: Refusal }

/**
 * What was exported is turned into a body. A line is a read when it has what only a read has: no body may have that. What
 * is not surely one goes as it stands, to the byte, and the service says what is wrong with it.
 */
function bodyOf(text: string, owner: string): Sent {
  if (!text.includes('"created_at"') || !text.includes('"version"')) return { body: text }
  const read = parse(text)
  if (!isRead(read)) return { body: text }
  const kind = 'record_id' in read ? read.stack_key : 'people'
  if (kind !== owner)
    return { body: null, refusal: unfitRefusal(`was exported from ${String(kind)}, not from ${owner}`) }
  // The links that made it bring it back; written, it would be a placeholder no more.
  if (read.state === 'placeholder') return { body: null }
  return { body: JSON.stringify(writable(read as never)) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isRead(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const fields = ['external_id', 'attribute_values', 'state', 'version', 'created_at', 'updated_at']
  const identified = 'consents' in value ? 'id' in value : 'record_id' in value && 'stack_key' in value
  return identified && fields.every(field => field in value)
}
