import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UsageError } from '../command.ts'
import { beginning, decodedToUtf8, type Pieces, withoutByteOrderMark } from './pieces.ts'

export type Format = 'ndjson' | 'csv'

/** A file that is read piece by piece, uncompressed, in UTF-8, and without a byte order mark. */
export type Input = {
  pieces: Pieces
  /** The size on disk; null if it is unknown. */
  totalBytes: number | null
  /** How many of these bytes have been read. */
  readBytes(): number
  /** Closes the source. An open terminal or pipe would keep the process running. */
  close(): void
}

const pieceBytes = 262_144

/** The format of a file: that of `--format`, else by the name. Throws a UsageError if neither tells. */
export function formatOf(file: string, option: Format | undefined): Format {
  const [, extension] = /\.(\w+)(?:\.gz)?$/i.exec(basename(file)) ?? []
  const formats: Record<string, Format> = { ndjson: 'ndjson', jsonl: 'ndjson', csv: 'csv', tsv: 'csv' }
  const format = option ?? formats[extension?.toLowerCase() ?? '']
  if (format) return format
  const name = file === '-' ? 'standard input' : file
  throw new UsageError(`The format of ${name} is unknown. Use --format ndjson or --format csv.`)
}

/**
 * Opens a file, or standard input for `-`. `file` is the name in messages, `path` the file that is read, `encoding` its
 * encoding if that is not UTF-8. Throws an Error if the file does not exist or cannot be read.
 */
export async function openInput(file: string, path: string, encoding?: string): Promise<Input> {
  const { source, totalBytes } = file === '-' ? { source: process.stdin, totalBytes: null } : await openFile(file, path)
  let readBytes = 0
  async function* countedPieces() {
    for await (const piece of source) {
      readBytes += piece.length
      yield piece as Buffer
    }
  }
  const uncompressed = decompressed(file, countedPieces())
  const pieces =
    encoding === undefined ? withoutByteOrderMark(file, uncompressed) : decodedToUtf8(file, uncompressed, encoding)
  return { pieces, totalBytes, readBytes: () => readBytes, close: () => source.destroy() }
}

/** Opens the file before it returns: a stream that opens its file later reports a failure when nobody listens yet. */
async function openFile(file: string, path: string): Promise<{ source: Readable; totalBytes: number | null }> {
  const handle = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `There is no file ${file}.` : `${file} cannot be read: ${error.message}`)
  })
  const found = await handle.stat()
  if (found.isDirectory()) {
    await handle.close()
    throw new Error(`${file} is a folder. Give a file.`)
  }
  const source = handle.createReadStream({ highWaterMark: pieceBytes })
  return { source, totalBytes: found.isFile() ? found.size : null }
}

async function* decompressed(file: string, pieces: Pieces): AsyncGenerator<Uint8Array> {
  const [start, all] = await beginning(pieces, 2)
  if (start[0] !== 0x1f || start[1] !== 0x8b) return yield* all
  const uncompressed = createGunzip({ chunkSize: pieceBytes })
  // The loop that reads from `uncompressed` throws the error.
  pipeline(Readable.from(all, { objectMode: false }), uncompressed, () => {})
  try {
    yield* uncompressed
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error
    throw new Error(`${file} is damaged: it cannot be decompressed (${(error as Error).message}).`)
  }
}
