import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { Fault, refuse } from '../../errors.ts'
import type { Observer } from '../../observer.ts'
import type { Connections } from '../overload/connection-limits.ts'
import type { Drain } from '../server/drain.ts'
import { isRefusedByDrain } from '../server/open-connections.ts'
import { startDeadline } from './deadline.ts'
import type { Exchange } from './exchange.ts'
import { logExchange } from './log.ts'
import { beginObserving, endObserving } from './request-telemetry.ts'

export const isVersioned = (url: string): boolean => /^\/v1([/?#]|$)/.test(url)

type Admission = {
  requestMs: number
  drain: Drain
  connections: Connections
  /** Called when the connection is done with a request. */
  gate: { leave(response: ServerResponse): void }
  logger: Logger
  observer: Observer
}

/**
 * Starts a request that its connection has counted in: starts its deadline and counts it. When the connection is done
 * with the request, answered or not, this logs it. When its work has ended too, this counts it out.
 */
export function admit(exchange: Exchange, admission: Admission): void {
  const { requestMs, drain, connections, gate, logger, observer } = admission
  exchange.deadline = startDeadline(Math.min(requestMs, drain.leftMs()), fault => {
    if (exchange.work) return
    // The body has not arrived completely. No other code checks the deadline while kith waits for it.
    exchange.header('Connection', 'close')
    exchange.refuse(fault.refusal)
  })
  beginObserving(exchange, observer)
  const leave = isVersioned(exchange.url) ? drain.enter() : () => {}
  // The event occurs once, so `on` avoids the wrapper that `once` makes.
  exchange.response.on('close', () => {
    connections.leave(exchange)
    gate.leave(exchange.response)
    logExchange(logger, exchange, observer.tracer)
    endObserving(exchange, observer)
    finish(exchange, leave)
  })
}

export const draining = new Fault(
  refuse('operation_failed', 'The service is shutting down. Retry after 1 second.', {
    status: 503,
    headers: { 'Retry-After': '1' },
  }),
)

/** Throws a Fault of 503 for a request on a connection that was opened after the drain began to refuse new ones. */
export function throwIfDraining({ url, request }: Exchange, observer: Observer): void {
  if (!isRefusedByDrain(request.socket) || !isVersioned(url)) return
  observer.overloaded('draining')
  throw draining
}

// The client has disconnected, so this is never sent.
const clientDisconnected = new Fault(refuse('operation_failed', 'The client disconnected.'))

/** If the client has disconnected, cancels a read. A write is finished, and a drain waits for it. */
function finish({ work, endpoint, deadline, response }: Exchange, leave: () => void) {
  const end = () => {
    deadline.end()
    leave()
  }
  if (!work) return end()
  work.then(end, end)
  if (!response.writableFinished && endpoint?.row?.scope.endsWith(':read')) deadline.cancel(clientDisconnected)
}
