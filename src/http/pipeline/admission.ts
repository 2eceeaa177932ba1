import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { Fault, refuse } from '../../errors.ts'
import type { Observer } from '../../observer.ts'
import type { Connections } from '../overload/connection-limits.ts'
import type { Drain } from '../server/drain.ts'
import { isLate } from '../server/open-connections.ts'
import { startDeadline } from './deadline.ts'
import type { Exchange } from './exchange.ts'
import { logExchange } from './log.ts'
import { beginObserving, endObserving } from './request-telemetry.ts'

export const isVersioned = (url: string): boolean => /^\/v1([/?#]|$)/.test(url)

type Admission = {
  requestMs: number
  drain: Drain
  connections: Connections
  /** What it is told when the connection is done with a request. */
  gate: { leave(response: ServerResponse): void }
  logger: Logger
  observer: Observer
}

/**
 * The first and the last moment of a request that has been counted in on its connection. It is given its time and is
 * counted in; when its connection is done with it, answered or not, it is logged, and once its work has ended, too,
 * counted out.
 */
export function admit(exchange: Exchange, of: Admission): void {
  const { requestMs, drain, connections, gate, logger, observer } = of
  exchange.deadline = startDeadline(Math.min(requestMs, drain.leftMs()), fault => {
    if (exchange.work) return
    // The body is still on its way: nobody else would notice that the time is over.
    exchange.header('Connection', 'close')
    exchange.refuse(fault.refusal)
  })
  beginObserving(exchange, observer)
  const leave = isVersioned(exchange.url) ? drain.enter() : () => {}
  // It comes once: `on` spares the wrapper of `once`.
  exchange.response.on('close', () => {
    connections.leave(exchange)
    gate.leave(exchange.response)
    logExchange(logger, exchange, observer.tracer)
    endObserving(exchange, observer)
    finish(exchange, leave)
  })
}

export const draining = new Fault(
  refuse('operation_failed', 'The service is shutting down.', { status: 503, headers: { 'Retry-After': '1' } }),
)

/** Throws a Fault of 503 for a request by a connection that was made when the drain refused new ones. */
export function refuseLatecomers({ url, request }: Exchange, observer: Observer): void {
  if (!isLate(request.socket) || !isVersioned(url)) return
  observer.overloaded('draining')
  throw draining
}

// Nobody is there to read it.
const gone = new Fault(refuse('operation_failed', 'The client went away.'))

/** What a client that went away wanted to read is cancelled. What it wanted to write is finished: draining waits for it. */
function finish({ work, place, deadline, response }: Exchange, leave: () => void) {
  const end = () => {
    deadline.end()
    leave()
  }
  if (!work) return end()
  work.then(end, end)
  if (!response.writableFinished && place?.row?.scope.endsWith(':read')) deadline.cancel(gone)
}
