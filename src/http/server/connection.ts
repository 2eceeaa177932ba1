import type { IncomingMessage } from 'node:http'
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
