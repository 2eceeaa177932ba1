import { basename } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type FileOptions, type Format, formatOfName, type OpenFile, openPieces } from '../../transfer/file.ts'
import type { Pieces } from '../../transfer/pieces.ts'
import { UsageError } from '../command.ts'
import { openToRead } from '../files.ts'

/** The file of an import. */
export type Input = OpenFile & {
  /** The size on disk; null if it is unknown. */
  totalBytes: number | null
  /** Closes the source. An open terminal or pipe would keep the process running. */
  close(): void
}

const pieceBytes = 262_144

/** The format of a file: from `--format`, else from its name. Throws a UsageError if neither tells it. */
export function formatOf(file: string, option: Format | undefined): Format {
  const format = option ?? formatOfName(basename(file))
  if (format) return format
  const name = file === '-' ? 'standard input' : file
  throw new UsageError(`The format of ${name} is unknown. Use --format ndjson or --format csv.`)
}

/**
 * Opens a file, or standard input for the name `-`. `path` is the file to read. Throws an Error if it does not exist or
 * cannot be read.
 */
export async function openInput(path: string, options: FileOptions): Promise<Input> {
  const { name } = options
  const { source, totalBytes } = name === '-' ? { source: process.stdin, totalBytes: null } : await openFile(name, path)
  const opened = openPieces(options, source, pieces => decompressed(name, pieces))
  return { ...opened, totalBytes, close: () => source.destroy() }
}

/**
 * Opens the file before it returns, because a stream that opens its file later reports a failure before it has a
 * listener.
 */
async function openFile(file: string, path: string): Promise<{ source: Readable; totalBytes: number | null }> {
  const handle = await openToRead(file, path)
  const found = await handle.stat()
  const source = handle.createReadStream({ highWaterMark: pieceBytes })
  return { source, totalBytes: found.isFile() ? found.size : null }
}

async function* decompressed(file: string, pieces: Pieces): Pieces {
  const uncompressed = createGunzip({ chunkSize: pieceBytes })
  // The loop that reads from `uncompressed` throws the error.
  pipeline(Readable.from(pieces, { objectMode: false }), uncompressed, () => {})
  try {
    yield* uncompressed
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error
    throw new Error(`${file} is damaged: it cannot be decompressed (${(error as Error).message}).`)
  }
}
