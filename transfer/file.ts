import { beginning, type Pieces, toUtf8 } from './pieces.ts'

export type Format = 'ndjson' | 'csv'

/** The format by the name of a file; undefined if the name has none. */
export function formatOfName(name: string): Format | undefined {
  const [, extension] = /\.(\w+)(?:\.gz)?$/i.exec(name) ?? []
  const formats: Record<string, Format> = { ndjson: 'ndjson', jsonl: 'ndjson', csv: 'csv', tsv: 'csv', txt: 'csv' }
  return formats[extension?.toLowerCase() ?? '']
}

/** A file that is read piece by piece, uncompressed, in UTF-8, and without a byte order mark. */
export type OpenFile = {
  pieces: Pieces
  /** The number of bytes read from the source. */
  readBytes(): number
  /** The encoding of the file; undefined until enough bytes have been read to decide. */
  encoding(): string | undefined
}

/**
 * `name` is the name of the file in messages. Without an `encoding`, the bytes of CSV decide. Other files are UTF-8.
 */
export type FileOptions = { name: string; format: Format; encoding: string | undefined }

/** Reads a file. `gunzip` decompresses, because Node and browsers differ. */
export function openPieces(
  { name, format, encoding: named }: FileOptions,
  source: Pieces,
  gunzip: (pieces: AsyncGenerator<Uint8Array>) => Pieces,
): OpenFile {
  let readBytes = 0
  let encoding: string | undefined
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
  const found = (name: string) => {
    encoding = name
  }
  const pieces = toUtf8(name, uncompressed(), { named, isGuessed: format === 'csv', found })
  return { pieces, readBytes: () => readBytes, encoding: () => encoding }
}
