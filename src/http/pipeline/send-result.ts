import { Fault, refuse } from '../../errors.ts'
import type { Release } from '../overload/response-memory.ts'
import { type Exchange, jsonType, linesType } from './exchange.ts'
import { success, successInParts } from './reply.ts'
import type { Call, ChunkedResult, HandlerResult } from './route.ts'

/** Answers up to here are not counted: all requests that may be under way hold 64 MiB of them. */
const uncountedCharacters = 64 * 1024

/**
 * Sends what a handler answers. An answer in one piece is on its way when this returns; parts are waited for. Throws what is to be
 * answered as an error, and what ended an answer in parts, whose connection it has cut.
 */
export function sendResult(
  exchange: Exchange,
  answer: HandlerResult,
  { memory, limits }: Pick<Call, 'memory' | 'limits'>,
): undefined | Promise<void> {
  if (answer.headers) exchange.headers(answer.headers)
  const idleMs = limits.requestMs
  if ('stream' in answer) return exchange.sendParts(answer.status, answer.stream, { contentType: linesType, idleMs })
  if ('parts' in answer) return sendParted(exchange, answer, idleMs)
  const body = success(answer)
  const release = answer.release ?? (body.length > uncountedCharacters ? takeFor(body, memory) : undefined)
  if (release) releaseWith(exchange, release)
  exchange.send(answer.status, body)
  return undefined
}

/** Makes the first part before the head is sent: what fails until then is answered as an error. */
async function sendParted(exchange: Exchange, { status, parts }: ChunkedResult, idleMs: number): Promise<void> {
  const first = await parts.next()
  const body = successInParts(joined(first, parts))
  await exchange.sendParts(status, body, { contentType: jsonType, idleMs })
}

async function* joined(first: IteratorResult<Buffer>, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (!first.done) yield first.value
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}

function takeFor(body: string, memory: Call['memory']): Release {
  const release = memory.take(Buffer.byteLength(body))
  if (!release) throw withoutRoom
  return release
}

const withoutRoom = new Fault(
  refuse(
    'operation_failed',
    'The request was carried out, but too many large answers of the organization wait for their clients to read them. Read the answers, then retry.',
    { status: 503, headers: { 'Retry-After': '1' } },
  ),
)

/** Releases when the response is over. One that waits for those before it on its connection is over with the connection. */
function releaseWith({ request: { socket }, response }: Exchange, release: Release) {
  const over = () => {
    socket.removeListener('close', over)
    release()
  }
  if (socket.destroyed) return release()
  response.once('close', over)
  socket.once('close', over)
}
