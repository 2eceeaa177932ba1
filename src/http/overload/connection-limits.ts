import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Limits } from '../../config.ts'
import { Fault, refuse } from '../../errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import { stopParser } from '../server/stop-parser.ts'

/** Pipelined requests that one connection may have under way. Node starts each as it arrives: 10,000 at once. */
export const maxPipelined = 32

/**
 * A request that is answered at once is no longer under way when the next one starts. Without this limit, 1,000
 * connections each started the 700 requests of a 64 kB chunk in one event-loop turn.
 */
const maxPerTurn = 2 * maxPipelined

/** The interval at which {@link drainUnreadBody} checks what still arrives. */
const checkIntervalMs = 20

/**
 * `startedInTurn` counts the requests of the current event-loop turn. A closing connection starts no further request.
 */
type Connection = { underWay: number; startedInTurn: number; isClosing: boolean; newest: Exchange | undefined }

export type Connections = {
  /** Counts a request in. 'refused' means that it exceeds the limit; 'dropped' means that it must not be started. */
  enter(exchange: Exchange): 'served' | 'refused' | 'dropped'
  /** Counts a request out, when its connection is done with it. */
  leave(exchange: Exchange): void
}

export const tooManyPipelined = new Fault(
  refuse(
    'operation_failed',
    `A connection may have at most ${maxPipelined} requests under way. Open a new connection and retry after 1 second.`,
    { status: 503, headers: { 'Retry-After': '1', Connection: 'close' } },
  ),
)

/**
 * Limits what one connection takes. The request past the limit is refused, after the responses to the requests before
 * it. The connection then closes, and the requests left in its buffers are not started. If a request is answered before
 * its body has arrived, the rest of the body has the usual limits of bytes and time.
 */
export function guardConnections(limits: Pick<Limits, 'batchBytes' | 'requestMs'>): Connections {
  return {
    enter: exchange => {
      const { socket } = exchange.request
      const connection = connectionOf(socket)
      if (connection.isClosing) return 'dropped'
      connection.newest = exchange
      connection.underWay += 1
      connection.startedInTurn += 1
      if (connection.startedInTurn === maxPipelined) setImmediate(resetTurn, connection)
      if (connection.underWay <= maxPipelined && connection.startedInTurn < maxPerTurn) return 'served'
      socket.pause()
      refuseFurtherRequests(socket)
      return 'refused'
    },
    leave: exchange => {
      const { request } = exchange
      const connection = connectionOf(request.socket)
      connection.underWay -= 1
      if (connection.newest === exchange) connection.newest = undefined
      if (!request.complete) drainUnreadBody(request, limits)
    },
  }
}

/**
 * Scheduled at the first request of each turn, this took a sixth of a GET. At a connection's 32nd request it costs
 * nothing.
 */
const resetTurn = (connection: Connection) => {
  connection.startedInTurn = 0
}

const connectionKey = Symbol('connection')

function connectionOf(socket: Socket & { [connectionKey]?: Connection }): Connection {
  socket[connectionKey] ??= { underWay: 0, startedInTurn: 0, isClosing: false, newest: undefined }
  return socket[connectionKey]
}

/** Whether a connection has no request under way. */
export const isIdle = (socket: Socket): boolean => connectionOf(socket).underWay === 0

/** Makes a connection start no further request. kith ignores the rest of its input. */
export function refuseFurtherRequests(socket: Socket): void {
  connectionOf(socket).isClosing = true
  stopParser(socket)
}

/**
 * Whether the response to a request may close its connection. If a pipelined request was started after it, closing
 * would lose the response to that request. If true, the connection starts no further request.
 */
export function mayEndConnection(exchange: Exchange): boolean {
  const connection = connectionOf(exchange.request.socket)
  if (connection.newest !== exchange) return false
  connection.isClosing = true
  return true
}

/**
 * Reads the rest of a body to its end, so that the client sees its response: as much as the largest body may have. Closes the
 * connection of a longer or
 * slow one.
 */
export function drainUnreadBody(
  request: IncomingMessage,
  { batchBytes, requestMs }: Pick<Limits, 'batchBytes' | 'requestMs'>,
): void {
  const { socket } = request
  const [maxBytes, untilMs] = [socket.bytesRead + batchBytes, Date.now() + requestMs]
  const timer = setInterval(() => {
    // Bytes behind a complete request belong to the next one.
    if (request.complete || socket.destroyed) return clearInterval(timer)
    if (socket.bytesRead > maxBytes || Date.now() > untilMs) socket.destroy()
  }, checkIntervalMs)
}
