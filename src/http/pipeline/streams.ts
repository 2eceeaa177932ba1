import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault, fail, refuse } from '../../errors.ts'
import { incomplete } from '../input/body.ts'

const isLines = /^[\t ]*application\/x-ndjson[\t ]*(;|$)/i

/** Throws a Fault of 400 unless the body comes as lines of JSON. */
export function requireLines(contentType: string | undefined): void {
  if (!isLines.test(contentType ?? ''))
    fail('invalid_parameter', 'The body must come with Content-Type: application/x-ndjson, one JSON object a line.')
}

/**
 * A body's bytes as they arrive. Throws a Fault of 504 when nothing has come for `idleMs` while it was waited for, and of 400
 * when its connection ends before it does.
 */
export async function* readChunks(request: IncomingMessage, idleMs: number): AsyncGenerator<Buffer> {
  const silence = new Fault(
    refuse('operation_failed', `Nothing arrived for ${idleMs / 1000} seconds.`, { status: 504 }),
  )
  // Whoever stops reading still wants to answer: the connection stays.
  const chunks: AsyncIterator<Buffer> = request.iterator({ destroyOnReturn: false })
  const next = () =>
    chunks.next().catch(() => {
      throw incomplete
    })
  try {
    for (;;) {
      const { value, done } = await within(next(), idleMs, silence)
      if (done) return
      yield value
    }
  } finally {
    // Not waited for: it comes after the bytes that do not come.
    chunks.return?.().catch(() => {})
  }
}

async function within<T>(work: Promise<T>, timeMs: number, late: Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const lateness = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late), timeMs)
  })
  // Nobody may be left to hear of a connection that breaks after its time.
  work.catch(() => {})
  try {
    return await Promise.race([work, lateness])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Sends a stream as it is made, and makes no more of it than the client reads: a part is asked for when the one before has
 * left, whose bytes may then be written over. The connection is cut when the stream throws,
 * and when the client reads nothing for `idleMs`. Settles when the stream has come to its end, read or not.
 */
export async function sendStream(
  response: ServerResponse,
  stream: AsyncIterable<string | Buffer>,
  idleMs: number,
): Promise<void> {
  const gone = new AbortController()
  const leave = () => gone.abort()
  const { socket } = response.req
  // A response that waits for those before it on its connection does not emit `close` when the connection does.
  for (const closing of [response, socket]) closing.once('close', leave)
  // A connection that closed before this does not emit it again.
  if (response.destroyed || socket.destroyed) leave()
  const { signal } = gone
  try {
    response.flushHeaders()
    for await (const part of stream) {
      if (signal.aborted || response.req.method === 'HEAD') break
      for (const piece of piecesOf(part)) await written(response, piece, signal, idleMs)
    }
    // What is still on its way is read and dropped, as after any answer that comes early.
    response.end(() => response.req.resume())
  } catch (error) {
    // Who has gone away has no use for what became of it.
    if (signal.aborted) return
    response.destroy()
    throw error
  } finally {
    socket.removeListener('close', leave)
  }
}

/** Who reads slowly is given time for so much, not for a whole part, which may be megabytes. */
const pieceBytes = 128 * 1024

function* piecesOf(part: string | Buffer): Generator<string | Buffer> {
  if (typeof part === 'string') yield part
  else for (let at = 0; at < part.length; at += pieceBytes) yield part.subarray(at, at + pieceBytes)
}

/** Settles when the piece has left for the client, or the connection is gone. */
async function written(response: ServerResponse, piece: string | Buffer, signal: AbortSignal, idleMs: number) {
  if (signal.aborted) return
  const patience = setTimeout(() => response.destroy(), idleMs)
  await new Promise<unknown>(resolve => {
    // Node drops what is written to a socket that has just died, and calls nobody back.
    signal.onabort = resolve
    response.write(piece, resolve)
  })
  clearTimeout(patience)
}
