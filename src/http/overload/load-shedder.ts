import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config, Limits } from '../../config.ts'
import type { Refusal } from '../../errors.ts'
import { failure } from '../pipeline/reply.ts'
import { type Connection, stopRequests } from '../server/connection.ts'
import { securityHeaders } from '../server/security-headers.ts'
import { requestId } from '../server/server.ts'
import { drainUnreadBody, mayEndConnection } from './connection-limits.ts'

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

/**
 * Returns a function that queues an item for `work`. Items run in order of arrival, from the end of the event-loop turn
 * in which they arrive. A turn runs `minPerTurn` items, or an eighth of the queue if that is more, so that the other
 * work of the event loop waits for no more than that.
 */
export function createBatchScheduler<Item>(minPerTurn: number, work: (item: Item) => void): (item: Item) => void {
  const queue: Item[] = []
  const runBatch = () => {
    try {
      for (let left = Math.min(queue.length, Math.max(minPerTurn, queue.length >> 3)); left > 0; left -= 1)
        work(queue.shift()!)
    } finally {
      // An item that throws does not keep the others from running.
      if (queue.length > 0) setImmediate(runBatch)
    }
  }
  return item => {
    if (queue.push(item) === 1) setImmediate(runBatch)
  }
}

/**
 * The placeholder of the request id in the prepared text. With a character above U+00FF, V8 would store the text and
 * each part of it with two bytes a character.
 */
const idPlaceholder = '\u{ff}'

/** Answers a request with a refusal; `closing` closes the connection after the response. */
type SendRefusal = (request: IncomingMessage, response: ServerResponse, closing: boolean) => void

/**
 * Prepares the responses with a refusal of the gate. They bypass the usual path of a response and use a prepared text,
 * because a refusal must cost next to nothing under load.
 */
export function prepareRefusal(refusal: Refusal, config: Pick<Config, 'tls' | 'corsOrigins'>): SendRefusal {
  const [before = '', between = '', after = ''] = failure(refusal, idPlaceholder).split(idPlaceholder)
  const constantLines = Object.entries({
    ...securityHeaders(config),
    ...refusal.headers,
    'Content-Type': 'application/json; charset=utf-8',
  }).flat()
  const origins = new Set(config.corsOrigins)
  return ({ headers }, response, closing) => {
    const request_id = requestId(headers['x-request-id'])
    const body = `${before}${request_id}${between}${request_id}${after}`
    const lines = [...constantLines, 'X-Request-Id', request_id, 'Content-Length', `${body.length}`]
    if (closing) lines.push('Connection', 'close')
    const { origin } = headers
    if (origin !== undefined && origins.has(origin))
      lines.push(
        'Access-Control-Allow-Origin',
        origin,
        'Vary',
        'Origin',
        'Access-Control-Expose-Headers',
        'Retry-After',
      )
    response.writeHead(refusal.status, lines)
    response.end(body, 'latin1')
  }
}
