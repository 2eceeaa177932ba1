import type { Logger } from 'pino'
import type { Tracer } from '../observer.ts'
import type { Exchange } from './exchange.ts'

/** One line a request. The route's template, never its address: an external identifier may be somebody's name. */
export function logExchange(logger: Logger, exchange: Exchange, tracer?: Tracer): void {
  const { id, request, response, place, started_ms, caller, deadline } = exchange
  logger.info(
    {
      request_id: id,
      ...(tracer && { trace_id: tracer.traceIdOf(deadline.signal) }),
      method: request.method,
      route: place?.path ?? 'unknown',
      // Nobody took the answer: the client went away before it was all sent.
      ...(response.writableFinished ? { status: response.statusCode } : { aborted: true }),
      duration_ms: Math.round((performance.now() - started_ms) * 10) / 10,
      organization: caller?.organization.key,
    },
    'request',
  )
}
