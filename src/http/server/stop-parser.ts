import type { Socket } from 'node:net'
import type { Connection } from './connection.ts'

type ParsedSocket = Socket & { parser?: { onIncoming?: unknown } | null }

/** Returns an error code to Node's parser, which then stops at its current position. */
const stop = () => -1

/**
 * Makes a connection start no further request, and stops its parser. Pending responses are still sent, and the last one
 * must end the connection. Otherwise the parser makes 3,000 requests and responses of a 64 kB chunk before any of them is
 * checked. A thousand connections do so in one event-loop turn, which frees none of them. A pause of the socket takes
 * effect only with the next chunk.
 *
 * Node does not document that the parser calls `onIncoming`. If it does not, requests are made and then ignored.
 */
export function stopRequests(connection: Connection): void {
  connection.isClosing = true
  const { parser }: ParsedSocket = connection.socket
  if (typeof parser?.onIncoming === 'function') parser.onIncoming = stop
}
