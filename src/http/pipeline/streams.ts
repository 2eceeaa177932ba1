import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRefusal, Fault, refuse } from '../../errors.ts'
import { incompleteBody } from '../input/body.ts'

const isLines = /^[\t ]*application\/x-ndjson[\t ]*(;|$)/i

/** Throws a Fault of 400 unless the content type is that of JSON lines. */
export function requireLines(contentType: string | undefined): void {
  if (!isLines.test(contentType ?? ''))
    refuse(
      'invalid_parameter',
      'The body must be sent with Content-Type: application/x-ndjson, one JSON object per line.',
    )
}

/**
 * Yields the bytes of a body as they arrive. Throws a Fault of 504 if no data arrives for `idleMs`, and of 400 if the
 * connection closes before the body is complete.
 */
export async function* readChunks(request: IncomingMessage, idleMs: number): AsyncGenerator<Buffer> {
  const timeout = new Fault(
    createRefusal('operation_failed', `No data arrived for ${idleMs / 1000} seconds.`, { status: 504 }),
  )
  // A reader that stops early still sends a response, so the connection must stay open.
  const chunks: AsyncIterator<Buffer> = request.iterator({ destroyOnReturn: false })
  const next = () =>
    chunks.next().catch(() => {
      throw incompleteBody
    })
  try {
    for (;;) {
      const { value, done } = await within(next(), idleMs, timeout)
      if (done) return
      yield value
    }
  } finally {
    // Not awaited: it would wait for data that may never arrive.
    chunks.return?.().catch(() => {})
  }
}

async function within<T>(work: Promise<T>, timeMs: number, timeoutError: Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timeoutError), timeMs)
  })
  // If the work fails after the timeout, its rejection must not be unhandled.
  work.catch(() => {})
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Sends a stream with back-pressure: it requests the next part when the previous one has been sent. The producer may
 * then reuse the previous part's buffer. Closes the connection if the stream throws, or if the client reads nothing for
 * `idleMs`. Settles at the end of the stream, whether the client has read it or not.
 */
export async function sendStream(
  response: ServerResponse,
  stream: AsyncIterable<string | Buffer>,
  idleMs: number,
): Promise<void> {
  const disconnected = new AbortController()
  const disconnect = () => disconnected.abort()
  const { socket } = response.req
  // A response that waits for earlier ones does not emit `close` when its connection closes.
  for (const closing of [response, socket]) closing.once('close', disconnect)
  // A connection that has already closed does not emit `close` again.
  if (response.destroyed || socket.destroyed) disconnect()
  const { signal } = disconnected
  try {
    response.flushHeaders()
    for await (const part of stream) {
      if (signal.aborted || response.req.method === 'HEAD') break
      for (const piece of piecesOf(part)) await writePiece(response, piece, signal, idleMs)
    }
    response.end(() => dropRest(response.req))
  } catch (error) {
    // The client has disconnected, so it needs no error.
    if (signal.aborted) return
    abort(response)
    throw error
  } finally {
    socket.removeListener('close', disconnect)
  }
}

/**
 * Reads the rest of a body and drops it, as after any early response. Node stops a body without a listener for its data when
 * {@link readChunks} ends, and the next request of the connection then got no answer.
 */
const dropRest = (request: IncomingMessage): unknown => request.on('data', () => {}).resume()

/**
 * Ends a response before its end. A response to HTTP/1.0 has no length and no chunks: only a reset shows its client that it is not whole. Over
 * TLS, the missing alert does.
 */
function abort(response: ServerResponse): void {
  const { httpVersion, socket } = response.req
  if (httpVersion === '1.0' && !('encrypted' in socket)) socket.resetAndDestroy()
  else response.destroy()
}

/** The idle timeout applies to pieces of this size. A whole part may have megabytes, too much for a slow client. */
const pieceBytes = 128 * 1024

function* piecesOf(part: string | Buffer): Generator<string | Buffer> {
  if (typeof part === 'string') yield part
  else for (let start = 0; start < part.length; start += pieceBytes) yield part.subarray(start, start + pieceBytes)
}

/** Settles when the piece has been sent, or when the connection has closed. */
async function writePiece(response: ServerResponse, piece: string | Buffer, signal: AbortSignal, idleMs: number) {
  if (signal.aborted) return
  const timer = setTimeout(() => abort(response), idleMs)
  await new Promise<unknown>(resolve => {
    // Node drops writes to a socket that has just closed and does not call back.
    signal.onabort = resolve
    response.write(piece, resolve)
  })
  clearTimeout(timer)
}
