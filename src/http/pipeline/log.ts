import type { Logger } from 'pino'
import { persistentErrorMessage } from '../../db/pg-errors.ts'
import { describeFault } from '../../describe-fault.ts'
import { Fault, type Refusal } from '../../errors.ts'
import { warnOfCondition, writeLine } from '../../logger.ts'
import type { Tracer } from '../../observer.ts'
import type { Exchange } from './exchange.ts'
import { refusalOf } from './reply.ts'

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

/** Returns the refusal for an error. Logs the error if it is a fault of kith or of the database. */
export function explain({ id, statuses }: Exchange, error: unknown, logger: Logger): Refusal {
  const refusal = refusalOf(error, statuses)
  const persistentMessage = persistentErrorMessage(error)
  if (persistentMessage !== undefined) warnOfCondition(logger, persistentMessage)
  else if (!(error instanceof Fault) && refusal.status >= 500) logger.error({ request_id: id, ...describeFault(error) })
  return refusal
}
