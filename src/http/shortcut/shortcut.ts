import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { readWhole, type Whole } from './complete-request.ts'

type Shortcut = {
  /** The last request of the connection that Node's parser has made. */
  last: () => IncomingMessage | undefined
  /** Whether nothing is under way on the connection. */
  isIdle: () => boolean
  /** Answers a request that came as one piece, now or later, or leaves it to Node. */
  answers: (whole: Whole) => boolean
  /** Sends what is not sent yet: what Node answers next comes after it. */
  settle: () => void
}

/**
 * Looks at what a connection brings before Node's parser does. What is one whole request, comes while nothing else is under
 * way and is answered here never reaches the parser: no request, no response and no streams are made for it.
 *
 * The parser must not stand in the middle of a request then. It does not where the last that it was given was one whole
 * request, of which it made one that is complete and as long. With the first bytes of any other kind the connection is
 * the parser's for good.
 */
export function takeShortcut(socket: Socket, { last, isIdle, answers, settle }: Shortcut): void {
  const [parse] = socket.listeners('data')
  if (!parse || socket.listenerCount('data') > 1) return
  let betweenRequests = false
  const look = (bytes: Buffer) => {
    const whole = isIdle() ? readWhole(bytes) : undefined
    if (!whole) {
      socket.on('data', parse as (bytes: Buffer) => void)
      socket.off('data', look)
    } else if (betweenRequests && answers(whole)) return
    settle()
    const before = last()
    parse.call(socket, bytes)
    betweenRequests = whole !== undefined && last() !== before && isWholly(last(), whole)
  }
  // Node's parser reads from the system itself until somebody else listens.
  socket.on('data', look)
  socket.off('data', parse as (bytes: Buffer) => void)
}

const isWholly = (request: IncomingMessage | undefined, { bytes }: Whole) =>
  request?.complete === true && (request.headers['content-length'] ?? '0') === `${bytes}`
