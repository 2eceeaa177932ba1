import type { IncomingMessage } from 'node:http'
import { Fault, refuse } from '../../errors.ts'

const tooLarge = new Fault(
  refuse('invalid_parameter', 'The body is too large.', {
    status: 413,
    // More of it is on its way.
    headers: { Connection: 'close' },
  }),
)

/** Of a body that comes byte by byte each chunk takes 300 bytes. */
const mostChunks = 1_024

/** Whoever sent it has gone: nobody hears this. */
export const incomplete = new Fault(refuse('invalid_parameter', 'The body ended before its time.'))

/** Whether a request brings a body that is read: GET and HEAD have none that means anything. */
export function bringsBody({ method, headers }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Reads the whole body. Rejects with a Fault of 413 as soon as it is seen to have more than `mostBytes`. */
export function readBody(request: IncomingMessage, mostBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > mostBytes) return reject(tooLarge)
    const chunks: Buffer[] = []
    let bytes = 0
    const stop = (fault: Fault) => {
      request.off('data', read)
      reject(fault)
    }
    const read = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > mostBytes) return stop(tooLarge)
      if (chunks.push(chunk) === mostChunks) chunks.push(Buffer.concat(chunks.splice(0)))
    }
    request.on('data', read)
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    request.once('error', () => stop(incomplete))
  })
}
