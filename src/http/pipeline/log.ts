import { persistentErrorMessage } from '../../db/pg-errors.ts'
import { describeFault } from '../../process/describe-fault.ts'
import type { Logger } from '../../process/logger.ts'
import type { Observer, RequestEnd, Tracer } from '../../process/observer.ts'
import { createRefusal, Fault, type Refusal } from '../../values/errors.ts'
import { drainUnreadBody } from '../input/body.ts'
import { isVersioned } from '../input/request-head.ts'
import type { Exchange } from './exchange.ts'
import { refusalOf } from './reply.ts'
import type { Services } from './services.ts'

/**
 * Logs one line per request. It names the route's template, not the path, because an external identifier may be a
 * person's name.
 */
function logExchange(logger: Logger, exchange: Exchange, nowMs: number, tracer?: Tracer): void {
  const { id, request, response, route, startedMs, organization, deadline } = exchange
  const traceId = tracer?.traceIdOf(deadline.signal)
  // If the response is not finished, the client disconnected before it was sent completely.
  const outcome = response.writableFinished ? `"status":${response.statusCode}` : '"aborted":true'
  const durationMs = Math.round((nowMs - startedMs) * 10) / 10
  // Only the organization's key may need escaping. The id has a fixed form, the route is constant, and methods are
  // words.
  logger.writeLine(
    `,"request_id":"${id}"${traceId ? `,"trace_id":"${traceId}"` : ''},"method":"${request.method}","route":"${route ?? 'unknown'}"` +
      `,${outcome},"duration_ms":${durationMs}${organization === undefined ? '' : `,"organization":${JSON.stringify(organization)}`},"msg":"request"`,
  )
}

/** Returns the refusal for an error. Logs the error if it is a fault of kith or of the database. */
export function explain({ id, statuses }: Exchange, error: unknown, logger: Logger): Refusal {
  const refusal = refusalOf(error, statuses)
  const persistentMessage = persistentErrorMessage(error)
  if (persistentMessage !== undefined) logger.warnOfCondition(persistentMessage)
  else if (!(error instanceof Fault) && refusal.status >= 500) logger.error({ request_id: id, ...describeFault(error) })
  return refusal
}

/**
 * Observes a request that the gate has admitted. When the connection is done with the request, answered or not, this
 * logs it. When its work has ended too, this releases its slot.
 */
export function observe(exchange: Exchange, { config, drain, logger, instruments: { observer } }: Services): void {
  const { connection, request, response, deadline } = exchange
  const end = () => {
    if (!connection.unanswered.delete(end)) return
    if (connection.newest === request) connection.newest = undefined
    if (!request.complete) drainUnreadBody(request, config.limits)
    const nowMs = performance.now()
    logExchange(logger, exchange, nowMs, observer.tracer)
    endObserving(exchange, observer, nowMs)
    finish(exchange)
    connection.onAnswered?.()
  }
  connection.unanswered.add(end)
  // The event occurs once, so `on` avoids the wrapper that `once` makes.
  response.on('close', end)
  observer.requestBegan()
  observer.tracer?.request(deadline.signal, request.method!, request.headers.traceparent as string | undefined)
  if (isVersioned(exchange.url)) drain.noteRequest()
}

// The client has disconnected, so this is never sent.
const clientDisconnected = new Fault(createRefusal('operation_failed', 'The client disconnected.'))

/** Cancels a read if its client has disconnected. A write is completed, and a drain waits for it. */
function finish(exchange: Exchange) {
  const { isRead, deadline, response } = exchange
  exchange.afterWork(() => {
    deadline.end()
    exchange.leave()
  })
  if (!response.writableFinished && isRead && exchange.isWorking) deadline.signal.abort(clientDisconnected)
}

/**
 * Reports the end of a request, with the route's template and never its path, as in the log. In the metrics, a request
 * without an accepted token has no route, so that only clients with a token can add series.
 */
function endObserving(exchange: Exchange, observer: Observer, nowMs: number): void {
  const { request, response, route, startedMs, followsSinceMs, deadline, refused, organization } = exchange
  const end: RequestEnd = {
    method: request.method!,
    route,
    status: response.writableFinished ? response.statusCode : undefined,
    // The time that a request waits for events says nothing about the speed of the service.
    durationMs: (followsSinceMs ?? nowMs) - startedMs,
    error: refused,
  }
  const isUnknown = organization === undefined && isVersioned(exchange.url)
  observer.requestEnded(isUnknown ? { ...end, route: undefined } : end)
  observer.tracer?.requestEnded(deadline.signal, end)
}
