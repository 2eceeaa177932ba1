/** The pieces of a file. */
export type Pieces = AsyncIterable<Uint8Array>

/** Returns the first `bytes` bytes or more, as far as there are any, and all pieces again including these. */
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

export function concat(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** The file is not in the encoding in which it is read. */
export class EncodingError extends Error {}

/** Converts the text to UTF-8. The decoder drops the byte order mark. Throws an {@link EncodingError}. */
export async function* decodedToUtf8(file: string, pieces: Pieces, encoding: string): AsyncGenerator<Uint8Array> {
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

/** Drops the byte order mark of UTF-8. Throws an {@link EncodingError} for a file that has the one of UTF-16. */
export async function* withoutByteOrderMark(file: string, pieces: Pieces): AsyncGenerator<Uint8Array> {
  const [start, all] = await beginning(pieces, 3)
  const [first, second, third] = start
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff))
    throw new EncodingError(`${file} is encoded in UTF-16. Use --encoding utf-16le or utf-16be.`)
  let markBytes = first === 0xef && second === 0xbb && third === 0xbf ? 3 : 0
  for await (const piece of all) {
    yield markBytes > 0 ? piece.subarray(markBytes) : piece
    markBytes = 0
  }
}
