import { beginning, decodedToUtf8, type Pieces, withoutByteOrderMark } from './pieces.ts'

export type Format = 'ndjson' | 'csv'

/** The format that the name of a file tells; undefined if it tells none. */
export function formatOfName(name: string): Format | undefined {
  const [, extension] = /\.(\w+)(?:\.gz)?$/i.exec(name) ?? []
  const formats: Record<string, Format> = { ndjson: 'ndjson', jsonl: 'ndjson', csv: 'csv', tsv: 'csv', txt: 'csv' }
  return formats[extension?.toLowerCase() ?? '']
}

/** A file that is read piece by piece, uncompressed, in UTF-8, and without a byte order mark. */
export type OpenFile = {
  pieces: Pieces
  /** How many bytes of the source have been read. */
  readBytes(): number
}

/**
 * Reads a file. `name` is its name in messages, `encoding` its encoding if that is not UTF-8. `gunzip` decompresses: Node and browsers
 * do it differently.
 */
export function openPieces(
  name: string,
  source: Pieces,
  encoding: string | undefined,
  gunzip: (pieces: AsyncGenerator<Uint8Array>) => Pieces,
): OpenFile {
  let readBytes = 0
  async function* counted() {
    for await (const piece of source) {
      readBytes += piece.length
      yield piece
    }
  }
  async function* uncompressed() {
    const [start, all] = await beginning(counted(), 2)
    yield* start[0] === 0x1f && start[1] === 0x8b ? gunzip(all) : all
  }
  const pieces =
    encoding === undefined ? withoutByteOrderMark(name, uncompressed()) : decodedToUtf8(name, uncompressed(), encoding)
  return { pieces, readBytes: () => readBytes }
}
