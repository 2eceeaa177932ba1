import { beginning, decodedToUtf8, type Pieces, withoutByteOrderMark } from '../../../cli/import/pieces.ts'

/** The encodings that a file can be read in. `utf-8` drops the byte order mark and refuses UTF-16. */
export const encodings = ['utf-8', 'windows-1252', 'utf-16le'] as const
export type Encoding = (typeof encodings)[number]

export type FileFormat = 'csv' | 'ndjson'

/** The format that the name of a file tells; undefined if it tells none. */
export function formatOfName(name: string): FileFormat | undefined {
  const [, extension] = /\.(\w+)(?:\.gz)?$/i.exec(name) ?? []
  const formats: Record<string, FileFormat> = { ndjson: 'ndjson', jsonl: 'ndjson', csv: 'csv', tsv: 'csv', txt: 'csv' }
  return formats[extension?.toLowerCase() ?? '']
}

/** A file that is read piece by piece, uncompressed and in UTF-8. */
export type FileSource = {
  pieces: Pieces
  /** How many bytes of the file have been read. */
  readBytes(): number
}

/** Opens a file. Only the piece in work is in memory. */
export function openFile(file: File, encoding: Encoding): FileSource {
  let readBytes = 0
  async function* counted() {
    for await (const piece of piecesOf(file.stream())) {
      readBytes += piece.length
      yield piece
    }
  }
  const uncompressed = decompressed(counted())
  const pieces =
    encoding === 'utf-8'
      ? withoutByteOrderMark(file.name, uncompressed)
      : decodedToUtf8(file.name, uncompressed, encoding)
  return { pieces, readBytes: () => readBytes }
}

async function* decompressed(pieces: Pieces): AsyncGenerator<Uint8Array> {
  const [start, all] = await beginning(pieces, 2)
  if (start[0] !== 0x1f || start[1] !== 0x8b) return yield* all
  yield* piecesOf(streamOf(all).pipeThrough(new DecompressionStream('gzip')))
}

/** The pieces of a stream. Safari cannot iterate one. Leaving the iteration ends the stream. */
async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(value as Uint8Array<ArrayBuffer>)
    },
    async cancel() {
      await pieces.return(undefined)
    },
  })
}
