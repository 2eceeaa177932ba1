import type { Logger } from 'pino'
import { writeLine } from '../../logger.ts'
import type { Tracer } from '../../observer.ts'
import type { Exchange } from './exchange.ts'

/**
 * Logs one line per request. It names the route's template, never the path: an external identifier may be a person's
 * name.
 */
export function logExchange(logger: Logger, exchange: Exchange, tracer?: Tracer): void {
  const { id, request, response, route, startedMs, organization, deadline } = exchange
  const traceId = tracer?.traceIdOf(deadline.signal)
  // If the response is not finished, the client disconnected before it was sent completely.
  const outcome = response.writableFinished ? `"status":${response.statusCode}` : '"aborted":true'
  const durationMs = Math.round((performance.now() - startedMs) * 10) / 10
  // Only the organization's key may need escaping. The id has a fixed form, the route is constant, and methods are
  // words.
  writeLine(
    logger,
    `,"request_id":"${id}"${traceId ? `,"trace_id":"${traceId}"` : ''},"method":"${request.method}","route":"${route ?? 'unknown'}"` +
      `,${outcome},"duration_ms":${durationMs}${organization === undefined ? '' : `,"organization":${JSON.stringify(organization)}`},"msg":"request"`,
  )
}
