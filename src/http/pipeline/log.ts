import type { Logger } from 'pino'
import { writeLine } from '../../logger.ts'
import type { Tracer } from '../../observer.ts'
import type { Exchange } from './exchange.ts'

/** One line a request. The route's template, never its address: an external identifier may be somebody's name. */
export function logExchange(logger: Logger, exchange: Exchange, tracer?: Tracer): void {
  const { id, request, response, place, startedMs, caller, deadline } = exchange
  const traceId = tracer?.traceIdOf(deadline.signal)
  // Nobody took the answer: the client went away before it was all sent.
  const end = response.writableFinished ? `"status":${response.statusCode}` : '"aborted":true'
  const durationMs = Math.round((performance.now() - startedMs) * 10) / 10
  // What may hold a quote is written as JSON; the id has its form, the route is ours, and methods are words.
  writeLine(
    logger,
    `,"request_id":"${id}"${traceId ? `,"trace_id":"${traceId}"` : ''},"method":"${request.method}","route":"${place?.path ?? 'unknown'}"` +
      `,${end},"duration_ms":${durationMs}${caller ? `,"organization":${JSON.stringify(caller.organization.key)}` : ''},"msg":"request"`,
  )
}
