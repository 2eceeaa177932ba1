import type { Socket } from 'node:net'

type Parsed = Socket & { parser?: { onIncoming?: unknown } | null; [stopped]?: true }

const stopped = Symbol('stopped')

/** What Node's parser takes for an error, with which it stops where it stands. */
const stop = () => -1

/**
 * Has no request made any more of what a connection brings: its answers may leave, and the last of them is to end it. Of a chunk of
 * 64 kB Node's parser else makes 3,000 requests and responses before anybody is asked, of the chunks of a thousand connections in
 * one turn of the event loop, and none of them is freed in that turn. A pause holds from the next chunk on only.
 *
 * That the parser asks its `onIncoming` is not documented. Where it does not, the requests are made, and passed over.
 */
export function stopParser(socket: Parsed): void {
  const { parser } = socket
  if (typeof parser?.onIncoming !== 'function') return
  parser.onIncoming = stop
  socket[stopped] = true
}

/** Whether the parser's errors are that it was stopped. */
export const isStopped = (socket: Parsed): boolean => socket[stopped] === true
