import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The state of a client's connection. */
export class Connection {
  readonly socket: Socket
  /** Whether it starts no further request. A response that is due or already sent closes it. */
  isClosing = false
  /** The newest request that Node's parser made, until its response is over. */
  newest: IncomingMessage | undefined

  /**
   * Ends each started request whose response is not over (begin-request.ts). Their number is limited, and a connection
   * without one is idle.
   */
  readonly unanswered = new Set<() => void>()
  /** Called when a request has left {@link unanswered}: sends the refusal of malformed bytes behind the requests. */
  onAnswered: (() => void) | undefined
  /** The requests that started in the current event-loop turn, answered or not. */
  startedInTurn = 0

  /** Whether it counts in the limit of connections: since its first request below `/v1`. */
  isCounted = false
  /** The Authorization header of its last request below `/v1`, or without one the Cookie header, and the organization that it belongs to. */
  credential: string | undefined
  tenant: number | undefined

  /** The refusals by the gate that are queued or not sent completely. Such a request has not started. */
  pendingRefusals = 0

  /** Whether it was opened after the drain began to refuse new connections. */
  isRefusedByDrain = false
  /** The bytes sent and received when the drain last looked, since when they are the same, and when the drain ended it. */
  bytes = 0
  quietSinceMs = performance.now()
  endedAtMs: number | undefined

  constructor(socket: Socket) {
    this.socket = socket
    // In some versions of Node, a response that waits for earlier ones emits no `close` when its connection closes.
    socket.once('close', () => {
      for (const end of this.unanswered) end()
    })
  }
}

const connectionKey = Symbol('connection')

/** The record of a socket, on the socket itself. A weak map, read several times a request, cost a GET 2 µs. */
export function connectionOf(socket: Socket & { [connectionKey]?: Connection }): Connection {
  socket[connectionKey] ??= new Connection(socket)
  return socket[connectionKey]
}

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

/**
 * Closes a connection after the response to a request with `Upgrade`. kith answers that request like any other (RFC
 * 9110, 7.8). But Node drops the bytes behind it in the same chunk and reads the next chunk as the start of a request,
 * so it would run a body as a request.
 */
export function closeAfterUpgrade(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.upgrade === undefined) return
  response.setHeader('Connection', 'close')
  stopRequests(connection)
}
