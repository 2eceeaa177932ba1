import type { IncomingMessage, ServerResponse } from 'node:http'

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
 * Reads the rest of a body and drops it, as after any early response. When `readChunks` ends, Node stops a body without
 * a listener for its data. The next request of the connection then got no answer.
 */
const dropRest = (request: IncomingMessage): unknown => request.on('data', () => {}).resume()

/**
 * Aborts a response. A response to HTTP/1.0 has no length and no chunks, so only a reset shows the client that it is
 * incomplete. Over TLS, the missing alert does.
 */
function abort(response: ServerResponse): void {
  const { httpVersion, socket } = response.req
  if (httpVersion === '1.0' && !('encrypted' in socket)) socket.resetAndDestroy()
  else response.destroy()
}

/**
 * The idle timeout applies to pieces of this size. A whole part may have several megabytes, too many for a slow client.
 */
const pieceBytes = 128 * 1024

export function* piecesOf(part: string | Buffer): Generator<string | Buffer> {
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
