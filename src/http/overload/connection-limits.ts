import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../config.ts'
import type { Connection } from '../server/connection.ts'
import { maxPipelined } from './refusals.ts'

/**
 * A request that is answered at once is no longer under way when the next one starts. Without this limit, 1,000
 * connections each started the 700 requests of a 64 kB chunk in one event-loop turn.
 */
const maxPerTurn = 2 * maxPipelined

/** The interval at which {@link drainUnreadBody} checks what still arrives. */
const checkIntervalMs = 20

/** Counts a request of the connection. Returns whether the connection already has the most under way, or in this event-loop turn. */
export function isAtLimit(connection: Connection): boolean {
  connection.startedInTurn += 1
  if (connection.startedInTurn === maxPipelined) setImmediate(resetTurn, connection)
  return connection.unanswered.size >= maxPipelined || connection.startedInTurn >= maxPerTurn
}

/**
 * Scheduled at the first request of each turn, this took a sixth of a GET. At a connection's 32nd request it costs
 * nothing.
 */
const resetTurn = (connection: Connection) => {
  connection.startedInTurn = 0
}

/**
 * Whether the response to a request may close its connection. If the parser made another request after it, closing
 * would lose the response to that one. If true, the connection starts no further request.
 */
export function mayEndConnection(connection: Connection, request: IncomingMessage): boolean {
  if (connection.newest !== request) return false
  connection.isClosing = true
  return true
}

/**
 * Reads the rest of a body to its end, so that the client sees its response: as much as the largest body may have.
 * Closes the connection of a longer or slow one.
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
