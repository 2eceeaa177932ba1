import type { Logger } from 'pino'
import type { Limits } from '../../config.ts'
import { createRefusal, Fault } from '../../errors.ts'
import type { Observer } from '../../observer.ts'
import { drainUnreadBody } from '../overload/connection-limits.ts'
import type { Drain } from '../server/drain.ts'
import type { Exchange } from './exchange.ts'
import { logExchange } from './log.ts'
import { beginObserving, endObserving } from './request-telemetry.ts'

export const isVersioned = (url: string): boolean => /^\/v1([/?#]|$)/.test(url)

type BeginOptions = { limits: Limits; drain: Drain; logger: Logger; observer: Observer }

/**
 * Begins a request that the gate has admitted. When the connection is done with the request, answered or not, this logs
 * it. When its work has ended too, this counts it out.
 */
export function beginRequest(exchange: Exchange, options: BeginOptions): void {
  const { limits, drain, logger, observer } = options
  const { connection, request, response } = exchange
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
  beginObserving(exchange, observer)
  if (isVersioned(exchange.url)) drain.noteRequest()
}

// The client has disconnected, so this is never sent.
const clientDisconnected = new Fault(createRefusal('operation_failed', 'The client disconnected.'))

/** If the client has disconnected, cancels a read. A write is finished, and a drain waits for it. */
function finish(exchange: Exchange) {
  const { work, isRead, deadline, response } = exchange
  const end = () => {
    deadline.end()
    exchange.leave()
  }
  if (!work) return end()
  work.then(end, end)
  if (!response.writableFinished && isRead) deadline.cancel(clientDisconnected)
}
