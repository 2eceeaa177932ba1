import type { Logger } from 'pino'
import { writeLine } from '../logger.ts'
import type { Tracer } from '../observer.ts'
import type { Exchange } from './exchange.ts'

/** One line a request. The route's template, never its address: an external identifier may be somebody's name. */
export function logExchange(logger: Logger, exchange: Exchange, tracer?: Tracer): void {
  const { id, request, response, place, started_ms, caller, deadline } = exchange
  const trace_id = tracer?.traceIdOf(deadline.signal)
  // Nobody took the answer: the client went away before it was all sent.
  const end = response.writableFinished ? `"status":${response.statusCode}` : '"aborted":true'
  const duration_ms = Math.round((performance.now() - started_ms) * 10) / 10
  // What may hold a quote is written as JSON; the id has its form, the route is ours, and methods are words.
  writeLine(
    logger,
    `,"request_id":"${id}"${trace_id ? `,"trace_id":"${trace_id}"` : ''},"method":"${request.method}","route":"${place?.path ?? 'unknown'}"` +
      `,${end},"duration_ms":${duration_ms}${caller ? `,"organization":${JSON.stringify(caller.organization.key)}` : ''},"msg":"request"`,
  )
}
