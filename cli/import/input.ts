import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UsageError } from '../command.ts'

export type Format = 'ndjson' | 'csv'

/** A file that is read piece by piece, unpacked, and without the mark that some programs begin a text with. */
export type Input = {
  pieces: AsyncIterable<Buffer>
  /** How much there is to read, as it lies on the disk; null where nobody knows. */
  totalBytes: number | null
  /** How much of that has been read. */
  readBytes(): number
  /** Lets go of it: a terminal, or a pipe, would keep the process. */
  close(): void
}

const pieceBytes = 262_144

/** What a name says of the format; `--format` says more. */
export function formatOf(file: string, asked: Format | undefined): Format {
  const [, extension] = /\.(\w+)(?:\.gz)?$/i.exec(basename(file)) ?? []
  const known: Record<string, Format> = { ndjson: 'ndjson', jsonl: 'ndjson', csv: 'csv', tsv: 'csv' }
  const format = asked ?? known[extension?.toLowerCase() ?? '']
  if (format) return format
  throw new UsageError(`Say by --format ndjson or --format csv what ${file === '-' ? 'standard input' : file} is.`)
}

/**
 * Opens a file, or standard input for `-`; `path` is where it lies, and `encoding` what it is written in, where that is
 * not UTF-8. Throws, in a sentence, what cannot be read.
 */
export async function openInput(file: string, path: string, encoding?: string): Promise<Input> {
  const totalBytes = file === '-' ? null : await sizeOf(file, path)
  const source: Readable = file === '-' ? process.stdin : createReadStream(path, { highWaterMark: pieceBytes })
  let readBytes = 0
  async function* counted() {
    for await (const piece of source) {
      readBytes += piece.length
      yield piece as Buffer
    }
  }
  const plain = unpacked(file, counted())
  const pieces = encoding === undefined ? withoutMark(file, plain) : decoded(file, plain, encoding)
  return { pieces, totalBytes, readBytes: () => readBytes, close: () => source.destroy() }
}

async function sizeOf(file: string, path: string): Promise<number | null> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(error.code === 'ENOENT' ? `There is no file ${file}.` : `${file} cannot be read: ${error.message}`)
  })
  if (found.isDirectory()) throw new Error(`${file} is a folder.`)
  return found.isFile() ? found.size : null
}

async function* unpacked(file: string, pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const [start, all] = await beginning(pieces, 2)
  if (start[0] !== 0x1f || start[1] !== 0x8b) return yield* all
  const plain = createGunzip({ chunkSize: pieceBytes })
  // What fails is thrown to whoever reads on.
  pipeline(Readable.from(all, { objectMode: false }), plain, () => {})
  try {
    yield* plain
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error
    throw new Error(`${file} is packed, but broken: ${(error as Error).message}.`)
  }
}

/** The same text in UTF-8, without its mark. */
async function* decoded(file: string, pieces: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  try {
    for await (const piece of pieces) yield Buffer.from(decoder.decode(piece, { stream: true }))
    yield Buffer.from(decoder.decode())
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new Error(`${file} is not written in ${encoding}.`)
  }
}

async function* withoutMark(file: string, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const [start, all] = await beginning(pieces, 3)
  if ((start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff))
    throw new Error(`${file} is written in UTF-16: say --encoding utf-16le or utf-16be.`)
  let markBytes = start.indexOf('\ufeff') === 0 ? 3 : 0
  for await (const piece of all) {
    yield markBytes > 0 ? piece.subarray(markBytes) : piece
    markBytes = 0
  }
}

/** The first piece, of at least so many bytes where there are, and all pieces, it again being the first. */
export async function beginning(
  pieces: AsyncIterable<Buffer>,
  bytes: number,
): Promise<[start: Buffer, all: AsyncGenerator<Buffer>]> {
  const iterator = pieces[Symbol.asyncIterator]()
  let start: Buffer = Buffer.alloc(0)
  while (start.length < bytes) {
    const next = await iterator.next()
    if (next.done) break
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value])
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
