import type { Logger } from 'pino'
import type { Limits } from '../../config.ts'
import { createRefusal, Fault } from '../../errors.ts'
import type { EndSpan, Observer, RequestEnd, Tracer } from '../../observer.ts'
import { drainUnreadBody } from '../overload/connection-limits.ts'
import type { Drain } from '../server/drain.ts'
import type { Exchange } from './exchange.ts'
import { logExchange } from './log.ts'

/** Whether a request target is below `/v1`. */
export const isVersioned = (url: string): boolean =>
  url.startsWith('/v1') && (url.length === 3 || '/?#'.includes(url[3]!))

type BeginOptions = { limits: Limits; drain: Drain; logger: Logger; observer: Observer }

/**
 * Begins a request that the gate has admitted. When the connection is done with the request, answered or not, this logs
 * it. When its work has ended too, this counts it out.
 */
export function beginRequest(exchange: Exchange, options: BeginOptions): void {
  const { limits, drain, logger, observer } = options
  const { connection, request, response, deadline } = exchange
  const end = () => {
    if (!connection.unanswered.delete(end)) return
    if (connection.newest === request) connection.newest = undefined
    if (!request.complete) drainUnreadBody(request, limits)
    logExchange(logger, exchange, observer.tracer)
    endObserving(exchange, observer, isVersioned(exchange.url))
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

/** If the client has disconnected, cancels a read. A write is finished, and a drain waits for it. */
function finish(exchange: Exchange) {
  const { isRead, deadline, response } = exchange
  exchange.afterWork(() => {
    deadline.end()
    exchange.leave()
  })
  if (!response.writableFinished && isRead && exchange.isWorking) deadline.signal.abort(clientDisconnected)
}

/**
 * Reports the end of a request, with the route's template and never its path, as in the log. In the metrics, a request whose token was not
 * accepted has no route: without a token, nobody makes them grow.
 */
function endObserving(exchange: Exchange, observer: Observer, needsToken: boolean): void {
  const { request, response, route, startedMs, followsSinceMs, deadline, refused, organization } = exchange
  const end: RequestEnd = {
    method: request.method!,
    route,
    status: response.writableFinished ? response.statusCode : undefined,
    // The time that a request waits for events says nothing about the service.
    durationMs: (followsSinceMs ?? performance.now()) - startedMs,
    error: refused,
  }
  observer.requestEnded(needsToken && organization === undefined ? { ...end, route: undefined } : end)
  observer.tracer?.requestEnded(deadline.signal, end)
}

/** Runs a stage of a request, in a span if there is a tracer. */
export function traced<T>(
  tracer: Tracer | undefined,
  name: string,
  { deadline }: Exchange,
  stage: () => T | Promise<T>,
): T | Promise<T> {
  return tracer ? inSpan(tracer.begin(name, deadline.signal), stage) : stage()
}

async function inSpan<T>(end: EndSpan, stage: () => T | Promise<T>): Promise<T> {
  try {
    const result = await stage()
    end()
    return result
  } catch (error) {
    end(true)
    throw error
  }
}
