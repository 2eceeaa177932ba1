import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../process/config.ts'
import { createRefusal, Fault } from '../../values/errors.ts'

// Without `Connection: close`: Node would close the connection at once, and a client that still sends would get a reset
// instead of the response. See drainUnreadBody.
const tooLarge = new Fault(createRefusal('invalid_parameter', 'The body is too large.', { status: 413 }))

/**
 * Small chunks are joined at this number. A chunk of one byte takes 300 bytes of memory: with 1,024 of them, 400 bodies
 * in such chunks took 170 MiB instead of 35. Joining chunks of 64 kB before the end took 8 ms more for a body of 8 MB.
 */
const maxChunks = 128
const smallChunkBytes = 4_096

/** The client has disconnected, so this is never sent. */
export const incompleteBody = new Fault(
  createRefusal('invalid_parameter', 'The connection closed before the body was complete.'),
)

/** Whether a request has a body to read. kith ignores the body of a GET or HEAD. */
export function hasBody({ method, headers }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Throws the Fault of 413 for a body whose length is known to exceed `maxBytes`. */
export function throwIfTooLarge({ headers }: IncomingMessage, maxBytes: number): void {
  if (Number(headers['content-length']) > maxBytes) throw tooLarge
}

/** Reads the whole body. Rejects with a Fault of 413 as soon as it exceeds `maxBytes`. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const joined: Buffer[] = []
    let chunks: Buffer[] = []
    let bytes = 0
    const stop = (fault: Fault) => {
      request.off('data', read)
      reject(fault)
    }
    const read = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBytes) return stop(tooLarge)
      if (chunks.push(chunk) < maxChunks) return
      joined.push(...(chunks.every(({ length }) => length >= smallChunkBytes) ? chunks : [Buffer.concat(chunks)]))
      chunks = []
    }
    request.on('data', read)
    request.once('end', () => resolve(bytes === chunks[0]?.length ? chunks[0] : Buffer.concat([...joined, ...chunks])))
    request.once('error', () => stop(incompleteBody))
  })
}

/** The interval at which {@link drainUnreadBody} checks for more data. */
const checkIntervalMs = 20

/**
 * Reads the rest of a body to its end, up to the maximum size of a body, so that the client sees its response. Closes
 * the connection if the body is longer or slow.
 */
export function drainUnreadBody(
  request: IncomingMessage,
  { batchBytes, requestMs }: Pick<Limits, 'batchBytes' | 'requestMs'>,
): void {
  const { socket } = request
  const [maxBytes, untilMs] = [socket.bytesRead + batchBytes, Date.now() + requestMs]
  const timer = setInterval(() => {
    // Bytes after a complete request belong to the next one.
    if (request.complete || socket.destroyed) return clearInterval(timer)
    if (socket.bytesRead > maxBytes || Date.now() > untilMs) socket.destroy()
  }, checkIntervalMs)
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
    // This is not awaited, because it would wait for data that may never arrive.
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
