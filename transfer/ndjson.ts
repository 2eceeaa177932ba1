import { writable } from '../client/index.ts'
import { concat } from '../client/src/ledger-text.ts'
import { buildUnfitRefusal, type ImportItem, type Refusal } from './item.ts'
import { parsedJson } from './parsed-json.ts'
import type { Pieces } from './pieces.ts'

/** The service accepts no larger entity. A longer line is refused and not kept in memory. */
const maxLineBytes = 16_777_216
/** The number of bytes kept of a refused long line. */
const keptBytes = 1_000

/**
 * Splits NDJSON into non-blank lines, each with the JSON to send. This JSON is the line itself, except for exported
 * lines and lines from a file of refused lines.
 */
export async function* ndjsonItems(pieces: Pieces, owner: string): AsyncGenerator<ImportItem[]> {
  const lines = new Lines()
  for await (const piece of pieces) yield itemsOf(lines.take(piece), owner)
  yield itemsOf(lines.last(), owner)
}

function itemsOf(lines: Line[], owner: string): ImportItem[] {
  return lines.flatMap(({ line, bytes, cut }): ImportItem[] => {
    const refusedItem = (message: string) => [
      { line, body: null, original: bytes, refusal: buildUnfitRefusal(message) },
    ]
    if (cut) return refusedItem(`has more than ${maxLineBytes} bytes`)
    const decoded = decode(bytes)
    if (decoded === undefined) return refusedItem('is not UTF-8')
    const text = withoutReason(decoded).trim()
    const isRefused = text.length < decoded.trim().length
    // A line that is refused again keeps only the new reason.
    const original = isRefused ? new TextEncoder().encode(text) : bytes
    return text === '' ? [] : [{ line, original, ...bodyOf(text, owner), ...(isRefused && { isRefused }) }]
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

type Line = { line: number; bytes: Uint8Array; cut: boolean }

/** Assembles lines from pieces. It keeps only the beginning of a line that is too long. */
class Lines {
  #line = 1
  #parts: Uint8Array[] = []
  #bytes = 0
  #cut = false

  /** Adds a piece and returns the lines that are complete now. */
  take(piece: Uint8Array): Line[] {
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

  /** Returns the last line if it has no line end. */
  last(): Line[] {
    return this.#bytes > 0 ? [this.#end()] : []
  }

  #hold(part: Uint8Array) {
    this.#bytes += part.length
    this.#cut ||= this.#bytes > maxLineBytes
    this.#parts.push(part)
    if (this.#cut) this.#parts = [concat(this.#parts).subarray(0, keptBytes)]
  }

  #end(): Line {
    const bytes = this.#parts.length === 1 ? this.#parts[0]! : concat(this.#parts)
    const line = { line: this.#line++, bytes, cut: this.#cut }
    ;[this.#parts, this.#bytes, this.#cut] = [[], 0, false]
    return line
  }
}

/** Adds the reason to a refused line: as its first field, or before the line if it is not an object. */
export function withReason(original: Uint8Array, reason: string): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder()
  const head = `{"refused_because":${JSON.stringify(reason)}`
  const body = /^\s*\{\s*/.exec(String.fromCharCode(...original.subarray(0, keptBytes)))
  if (!body) return concat([encoder.encode(`${head}} `), original])
  const rest = original.subarray(body[0].length)
  return concat([encoder.encode(rest[0] === 0x7d ? head : `${head},`), rest])
}

const earlierReason = /^\s*\{\s*(?:,?\s*"refused_because"\s*:\s*"(?:[^"\\]|\\.)*"\s*)+([,}])/

/** Removes the reasons that earlier imports added to the line. */
export function withoutReason(text: string): string {
  const [reason, end] = earlierReason.exec(text) ?? []
  if (reason === undefined) return text
  const rest = text.slice(reason.length)
  if (end === ',') return `{${rest}`
  return rest.trim() === '' ? '{}' : rest
}

type Body = { body: string } | { body: null; refusal?: Refusal }

/**
 * Converts an exported line into a body. A line counts as exported if it has the read-only fields, which no body may have.
 * Any other line is sent unchanged, byte for byte, and the service reports what is wrong with it.
 */
function bodyOf(text: string, owner: string): Body {
  if (!text.includes('"created_at"') || !text.includes('"version"')) return { body: text }
  const read = parsedJson(text)
  if (!isRead(read)) return { body: text }
  const kind = 'record_id' in read ? read.stack_key : 'people'
  if (kind !== owner)
    return { body: null, refusal: buildUnfitRefusal(`was exported from ${String(kind)}, not from ${owner}`) }
  // Links to a placeholder create it again. Writing it would make it more than a placeholder.
  if (read.state === 'placeholder') return { body: null }
  return { body: JSON.stringify(writable(read as never)) }
}

function isRead(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const fields = ['external_id', 'attribute_values', 'state', 'version', 'created_at', 'updated_at']
  const identified = 'consents' in value ? 'id' in value : 'record_id' in value && 'stack_key' in value
  return identified && fields.every(field => field in value)
}
