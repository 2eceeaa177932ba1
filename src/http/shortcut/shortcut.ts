import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type CompleteRequest, parseCompleteRequest } from './complete-request.ts'

type Shortcut = {
  /** Returns the newest request that Node's parser made on the connection, at least until its response is over. */
  lastRequest: () => IncomingMessage | undefined
  /** Returns whether the connection has nothing under way. */
  isIdle: () => boolean
  /** Answers a complete request, now or later, and returns true; or returns false to leave it to Node. */
  answer: (request: CompleteRequest) => boolean
  /** Sends responses that are still queued, before Node answers the next request. */
  flush: () => void
}

/**
 * Reads the bytes of a connection before Node's parser does. A complete request that arrives on an idle connection and
 * is answered here never reaches the parser, so no request, response or streams are made for it.
 *
 * This requires that the parser is not in the middle of a request. That is certain if its last input was one complete
 * request, and if it made one complete request of the same length from it. Any other input gives the connection back to
 * the parser for good.
 */
export function takeShortcut(socket: Socket, { lastRequest, isIdle, answer, flush }: Shortcut): void {
  const [parse] = socket.listeners('data')
  if (!parse || socket.listenerCount('data') > 1) return
  let isBetweenRequests = false
  const read = (bytes: Buffer) => {
    const complete = isIdle() ? parseCompleteRequest(bytes) : undefined
    if (!complete) {
      socket.on('data', parse as (bytes: Buffer) => void)
      socket.off('data', read)
    } else if (isBetweenRequests && answer(complete)) return
    flush()
    const before = lastRequest()
    parse.call(socket, bytes)
    const last = lastRequest()
    isBetweenRequests = complete !== undefined && last !== before && isSameRequest(last, complete)
  }
  // Node's parser reads directly from the operating system until another listener is added.
  socket.on('data', read)
  socket.off('data', parse as (bytes: Buffer) => void)
}

const isSameRequest = (request: IncomingMessage | undefined, { bytes }: CompleteRequest) =>
  request?.complete === true && (request.headers['content-length'] ?? '0') === `${bytes}`
