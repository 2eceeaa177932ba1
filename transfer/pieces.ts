import { concat } from '../client/src/ledger-text.ts'
import { reasonColumn } from './item.ts'

/** The pieces of a file. */
export type Pieces = AsyncIterable<Uint8Array>

/** Returns at least the first `bytes` bytes, if the file has them, and an iterable of all pieces including these. */
export async function beginning(
  pieces: Pieces,
  bytes: number,
): Promise<[start: Uint8Array, all: AsyncGenerator<Uint8Array>]> {
  const iterator = pieces[Symbol.asyncIterator]()
  let start: Uint8Array = new Uint8Array()
  while (start.length < bytes) {
    const next = await iterator.next()
    if (next.done) break
    start = start.length === 0 ? next.value : concat([start, next.value])
  }
  async function* all() {
    try {
      if (start.length > 0) yield start
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value
    } finally {
      await iterator.return?.()
    }
  }
  return [start, all()]
}

/** The error for a file that is not in its expected encoding. */
export class EncodingError extends Error {}

export type EncodingOptions = {
  /** The encoding of a file without a byte order mark; undefined detects it from the bytes. */
  named: string | undefined
  /** Whether a file without a mark may have another encoding than UTF-8. JSON must be UTF-8. */
  isGuessed: boolean
  /** Called with the encoding of the file, in lower case. */
  found: (encoding: string) => void
}

/**
 * Converts a file to UTF-8 without a byte order mark. A mark takes precedence over the named encoding, and so does the
 * reason at the start of a file of refused JSON lines. If a mark or detection says UTF-8, invalid bytes stay as they
 * are. Otherwise they throw an {@link EncodingError}.
 */
export async function* toUtf8(file: string, pieces: Pieces, options: EncodingOptions): AsyncGenerator<Uint8Array> {
  const { named, isGuessed, found } = options
  const [start, all] = await beginning(pieces, refusedLine.length)
  const encoding = markOf(start) ?? named ?? (isGuessed ? utf16Of(start) : 'utf-8')
  if (encoding === undefined) return yield* guessed(file, all, found)
  found(encoding)
  if (encoding !== 'utf-8' || (named === encoding && markOf(start) === undefined))
    return yield* decoded(file, all, encoding)
  let markBytes = start[0] === 0xef && markOf(start) ? 3 : 0
  for await (const piece of all) {
    yield markBytes > 0 ? piece.subarray(markBytes) : piece
    markBytes = 0
  }
}

/** Refused JSON lines begin with their reason, and are in UTF-8. */
const refusedLine = new TextEncoder().encode(`{"${reasonColumn}":`)

/** The encoding of a byte order mark, or of a file of refused JSON lines. */
function markOf(start: Uint8Array): string | undefined {
  if (refusedLine.every((byte, index) => start[index] === byte)) return 'utf-8'
  const [first, second, third] = start
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8'
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : undefined
}

/** UTF-16 if the first two characters are ASCII. */
function utf16Of([first, second, third, fourth]: Uint8Array): string | undefined {
  if (first && second === 0 && third && fourth === 0) return 'utf-16le'
  return first === 0 && second && third === 0 && fourth ? 'utf-16be' : undefined
}

const sampleBytes = 65_536

/** Converts text in UTF-8 or windows-1252. Both contain ASCII, so detection starts at the first other byte. */
async function* guessed(file: string, pieces: Pieces, found: (encoding: string) => void): AsyncGenerator<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    const at = next.value.findIndex(byte => byte > 0x7f)
    if (at === -1) {
      yield next.value
      continue
    }
    yield next.value.subarray(0, at)
    const from = next.value.subarray(at)
    const [sample, all] = await beginning(startingWith(from, iterator), sampleBytes)
    const encoding = encodingOf(sample.subarray(0, sampleBytes), sample.length <= sampleBytes)
    if (encoding === undefined)
      throw new EncodingError(`The encoding of ${file} cannot be found from its bytes. Name it with --encoding.`)
    found(encoding)
    return yield* encoding === 'utf-8' ? all : decoded(file, all, encoding)
  }
  found('utf-8')
}

async function* startingWith(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

/** Windows-1252 does not use these bytes. DOS encodings have letters there. */
const notWindows1252 = /[\x81\x8d\x8f\x90\x9d]/

/**
 * Detects the encoding of bytes that begin with a non-ASCII byte. Text in windows-1252 is hardly ever valid UTF-8, and
 * a UTF-8 file has few faults. Undefined if neither fits. With `isWhole`, the bytes are the end of the file; otherwise
 * their last character may be cut off.
 */
export function encodingOf(bytes: Uint8Array, isWhole: boolean): 'utf-8' | 'windows-1252' | undefined {
  const text = new TextDecoder('utf-8').decode(bytes, { stream: !isWhole })
  const invalid = text.split('\ufffd').length - 1
  const valid = text.match(/[^\0-\x7f\ufffd]/gu)?.length ?? 0
  if (invalid <= 10 * valid) return 'utf-8'
  return notWindows1252.test(new TextDecoder('windows-1252').decode(bytes)) ? undefined : 'windows-1252'
}

/** Converts text of an encoding. The decoder drops the byte order mark. */
async function* decoded(file: string, pieces: Pieces, encoding: string): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  const encoder = new TextEncoder()
  try {
    for await (const piece of pieces) yield encoder.encode(decoder.decode(piece, { stream: true }))
    yield encoder.encode(decoder.decode())
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new EncodingError(`${file} is not encoded in ${encoding}. Use another --encoding.`)
  }
}
