import { type FileOptions, type OpenFile, openPieces } from '../../../transfer/file.ts'

/** The encodings that a file can be read in. `detected` finds it from the bytes. */
export const encodings = ['detected', 'utf-8', 'windows-1252', 'utf-16le'] as const
export type Encoding = (typeof encodings)[number]

/** Opens a file. Only the piece in work is in memory. */
export function openFile(file: File, options: { format: FileOptions['format']; encoding: Encoding }): OpenFile {
  const encoding = options.encoding === 'detected' ? undefined : options.encoding
  return openPieces({ name: file.name, format: options.format, encoding }, piecesOf(file.stream()), pieces =>
    piecesOf(streamOf(pieces).pipeThrough(new DecompressionStream('gzip'))),
  )
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
