import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Limits } from '../../config.ts'
import { Fault, refuse } from '../../errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import { stopParser } from '../server/stop-parser.ts'

/** Requests that one connection may have under way. Node begins with each as it arrives, 10,000 of them at once. */
export const maxPipelined = 32

/**
 * What is answered at once is under way no longer when the next one comes: of a chunk of 64 kB 700 were begun by 1,000 connections
 * each, in one turn of the event loop.
 */
const mostInATurn = 2 * maxPipelined

/** How often is looked at what still comes after an answer. */
const glanceMs = 20

type Connection = { underWay: number; begun: number; full: boolean; newest: Exchange | undefined }

export type Connections = {
  /** Counts a request in. What it says: served, refused as the one too many, or not even begun. */
  enter(exchange: Exchange): 'served' | 'refused' | 'dropped'
  /** Counts one out again, when its connection is done with it. */
  leave(exchange: Exchange): void
}

export const tooManyPipelined = new Fault(
  refuse('operation_failed', `A connection may have ${maxPipelined} requests under way.`, {
    status: 503,
    headers: { 'Retry-After': '1', Connection: 'close' },
  }),
)

/**
 * Keeps one connection from taking more than its share. The request that is one too many is refused, after the answers to
 * those before it, and the connection ends with that: whatever else stands in its buffers is not begun. Of a body that
 * nobody reads any more, because its request is answered, no more is taken than any body may have, nor for longer.
 */
export function guardConnections(limits: Pick<Limits, 'bodyBytes' | 'requestMs'>): Connections {
  return {
    enter: exchange => {
      const { socket } = exchange.request
      const connection = connectionOf(socket)
      if (connection.full) return 'dropped'
      connection.newest = exchange
      connection.underWay += 1
      connection.begun += 1
      if (connection.begun === maxPipelined) setImmediate(forget, connection)
      if (connection.underWay <= maxPipelined && connection.begun < mostInATurn) return 'served'
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

/** Asked for at the first request of each turn, the end of the turn took a sixth of a GET; at a connection's 32nd it takes nothing. */
const forget = (connection: Connection) => {
  connection.begun = 0
}

const connectionKey = Symbol('connection')

function connectionOf(socket: Socket & { [connectionKey]?: Connection }): Connection {
  socket[connectionKey] ??= { underWay: 0, begun: 0, full: false, newest: undefined }
  return socket[connectionKey]
}

/** Whether a connection has no request under way. */
export const isIdle = (socket: Socket): boolean => connectionOf(socket).underWay === 0

/** Has a connection begin no further request: what it still brings is passed over. */
export function refuseFurtherRequests(socket: Socket): void {
  connectionOf(socket).full = true
  stopParser(socket)
}

/**
 * Whether the answer to a request may end its connection: the answer to a pipelined request that was begun after it would
 * be lost. After that answer the connection begins no further request.
 */
export function mayEndConnection(exchange: Exchange): boolean {
  const connection = connectionOf(exchange.request.socket)
  if (connection.newest !== exchange) return false
  connection.full = true
  return true
}

/** A short rest is read to its end, so that the client sees its answer; a long or slow one ends with the connection. */
export function drainUnreadBody(
  request: IncomingMessage,
  { bodyBytes, requestMs }: Pick<Limits, 'bodyBytes' | 'requestMs'>,
): void {
  const { socket } = request
  const [mostBytes, untilMs] = [socket.bytesRead + bodyBytes, Date.now() + requestMs]
  const timer = setInterval(() => {
    // What comes behind a request that is complete is the next one's.
    if (request.complete || socket.destroyed) return clearInterval(timer)
    if (socket.bytesRead > mostBytes || Date.now() > untilMs) socket.destroy()
  }, glanceMs)
}
