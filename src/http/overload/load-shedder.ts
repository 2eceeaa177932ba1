import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../../config.ts'
import type { Connection } from '../server/connection.ts'
import { stopRequests } from '../server/stop-parser.ts'
import { createBatchScheduler } from './batch-scheduler.ts'
import { drainUnreadBody, mayEndConnection } from './connection-limits.ts'
import type { prepareRefusal } from './refusal-response.ts'

/**
 * The least number of refusals in an event-loop turn. A refusal takes 40 µs. A request of another tenant takes several turns, and in
 * each of them it would wait for all refusals of a thousand connections.
 */
const minRefusalsPerTurn = 32

type RefusedRequest = {
  connection: Connection
  request: IncomingMessage
  response: ServerResponse
  send: ReturnType<typeof prepareRefusal>
  closing: boolean
}

type LoadShedderOptions = {
  limits: Pick<Limits, 'requestMs' | 'batchBytes'>
  /** Whether the next response closes its connection. */
  shouldClose: () => boolean
}

/**
 * Returns a function that refuses a request. Refusals are sent in batches, from the end of the event-loop turn: by then
 * kith has read everything that was sent together, a body with its request.
 */
export function createLoadShedder({ limits, shouldClose }: LoadShedderOptions): (refused: RefusedRequest) => void {
  function finish({ connection, request }: RefusedRequest) {
    connection.pendingRefusals -= 1
    if (connection.newest === request) connection.newest = undefined
  }

  const schedule = createBatchScheduler<RefusedRequest>(minRefusalsPerTurn, refused => {
    const { connection, request, response, send, closing } = refused
    if (connection.socket.destroyed) return
    if (!request.complete) drainUnreadBody(request, limits)
    send(request, response, closing || (shouldClose() && mayEndConnection(connection, request)))
    // TLS reports that a response was sent one turn later, and the next request may have arrived by then.
    if ('encrypted' in connection.socket) finish(refused)
    else response.once('close', () => finish(refused))
  })

  return refused => {
    refused.connection.pendingRefusals += 1
    if (refused.closing) stopRequests(refused.connection)
    schedule(refused)
  }
}
