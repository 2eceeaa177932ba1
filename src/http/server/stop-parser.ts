import type { Socket } from 'node:net'

type ParsedSocket = Socket & { parser?: { onIncoming?: unknown } | null; [stopped]?: true }

const stopped = Symbol('stopped')

/** Returns an error code to Node's parser, which then stops at its current position. */
const stop = () => -1

/**
 * Stops the parser of a connection, so that it makes no further requests. Pending responses are still sent, and the
 * last one must end the connection. Otherwise the parser makes 3,000 requests and responses of a 64 kB chunk before any
 * of them is checked. A thousand connections do so in one event-loop turn, which frees none of them. A pause of the
 * socket takes effect only with the next chunk.
 *
 * Node does not document that the parser calls `onIncoming`. If it does not, requests are made and then ignored.
 */
export function stopParser(socket: ParsedSocket): void {
  const { parser } = socket
  if (typeof parser?.onIncoming !== 'function') return
  parser.onIncoming = stop
  socket[stopped] = true
}

/** Whether the parser was stopped, so that its errors mean nothing. */
export const isStopped = (socket: ParsedSocket): boolean => socket[stopped] === true
