import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Drain } from './drain.ts'

/**
 * The maximum number of pipelined requests of a connection in flight. Node starts each as it arrives: 10,000 at once.
 */
export const maxPipelined = 32

/**
 * The limit of requests that start in an event-loop turn. A request with a body that is answered at once is no longer
 * in flight when the next one starts. Without this limit, 1,000 connections each started the 700 requests of a 64 kB
 * chunk.
 */
const maxPerTurn = 2 * maxPipelined

/** The state of a client's connection. */
export class Connection {
  readonly socket: Socket
  /** Whether the connection starts no further request, because a pending or sent response closes it. */
  isClosing = false
  /** The newest request that Node's parser made, until its response is over. */
  newest: IncomingMessage | undefined

  /**
   * A function for each started request whose response is not over, which ends it (pipeline.ts). Their number is
   * limited, and a connection without any is idle.
   */
  readonly unanswered = new Set<() => void>()
  /** Called when a request has left {@link unanswered}. Sends the refusal of malformed bytes after the requests. */
  onAnswered: (() => void) | undefined
  /** The requests that started in the current event-loop turn, answered or not. */
  #startedInTurn = 0

  /** Whether the limit of connections includes it, from its first request below `/v1` on. */
  isCounted = false
  /** The number of the gate's refusals that are not sent yet. Their requests have not started. */
  pendingRefusals = 0

  /** Whether it was opened after the drain began to refuse new connections. */
  readonly isRefusedByDrain: boolean
  /**
   * The bytes sent and received at the drain's last check, the time since when they are equal, and the time when it
   * ended the connection.
   */
  bytes = 0
  quietSinceMs = performance.now()
  endedAtMs: number | undefined

  constructor(socket: Socket, isRefusedByDrain: boolean) {
    this.socket = socket
    this.isRefusedByDrain = isRefusedByDrain
    // In some versions of Node, a response that waits for earlier ones emits no `close` when its connection closes.
    socket.once('close', () => {
      for (const end of this.unanswered) end()
    })
  }

  /**
   * Counts a request. Returns whether the connection has reached its limit of requests in flight, or in this event-loop
   * turn.
   */
  isAtLimit(): boolean {
    this.#startedInTurn += 1
    // Scheduling this at the first request of each turn took a sixth of a GET.
    if (this.#startedInTurn === maxPipelined) setImmediate(() => (this.#startedInTurn = 0))
    return this.unanswered.size >= maxPipelined || this.#startedInTurn >= maxPerTurn
  }

  /**
   * Whether the response to a request may close the connection. If the parser made another request after it, closing
   * would lose the response to that request. If true, the connection starts no further request.
   */
  mayEndWith(request: IncomingMessage): boolean {
    if (this.newest !== request) return false
    this.isClosing = true
    return true
  }

  /**
   * Makes the connection start no further request, and stops its parser. Pending responses are still sent, and the
   * last one must end the connection. Otherwise the parser makes 3,000 requests and responses of a 64 kB chunk before
   * any of them is checked. A thousand connections do so in one event-loop turn, which frees none of them. A pause of
   * the socket takes effect only with the next chunk.
   *
   * Node does not document that the parser calls `onIncoming`. If it does not, requests are made and then ignored.
   */
  stopRequests(): void {
    this.isClosing = true
    const { parser }: ParsedSocket = this.socket
    if (typeof parser?.onIncoming === 'function') parser.onIncoming = stop
  }

  /**
   * Closes the connection after the response to a request with `Upgrade`. kith answers that request like any other
   * (RFC 9110, 7.8). But Node drops the bytes behind it in the same chunk and reads the next chunk as the start of a
   * request, so it would run a body as a request.
   */
  closeAfterUpgrade(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.upgrade === undefined) return
    response.setHeader('Connection', 'close')
    this.stopRequests()
  }
}

type ParsedSocket = Socket & { parser?: { onIncoming?: unknown } | null }

/** Returns an error code to Node's parser, which then stops at its current position. */
const stop = () => -1

/** A connection is ended when it has been idle for this time. Before, its client may be about to use it. */
const idleMs = 1_000
/**
 * The time for the client to close a connection that kith has ended. If kith closed it earlier, a reset could reach the
 * client before it has read the end.
 */
const lingerMs = 1_000

type TrackingOptions = {
  /**
   * The maximum number of open sockets. A connection without a request has no tenant yet, so only this limit covers it.
   */
  max: number
  drain: Drain
  /**
   * Writes a last response to an idle connection and ends it. The response answers a request that is in transit at that
   * moment. kith does not start that request.
   */
  end: (socket: Socket) => void
}

export type OpenConnections = ReturnType<typeof trackConnections>

/** Tracks the open connections of a server. Closes each connection beyond the maximum at once. */
export function trackConnections(server: HttpServer, { max, drain, end }: TrackingOptions) {
  const accepted = new Set<Socket>()
  // HTTPS uses a TLS socket on top of the accepted socket.
  const open = new Map<Socket, Connection>()
  server.on('connection', (socket: Socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
    if (accepted.size > max) socket.destroy()
  })
  server.on(server instanceof HttpsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    open.set(socket, new Connection(socket, drain.isRefusing()))
    socket.once('close', () => open.delete(socket))
  })

  function visitOne(connection: Connection, mayEnd: boolean) {
    const { socket, endedAtMs } = connection
    const now = performance.now()
    const bytes = socket.bytesRead + socket.bytesWritten
    if (endedAtMs !== undefined) {
      if (now - endedAtMs >= lingerMs) socket.destroy()
    } else if (bytes !== connection.bytes) {
      connection.bytes = bytes
      connection.quietSinceMs = now
    } else if (mayEnd && connection.unanswered.size === 0 && now - connection.quietSinceMs >= idleMs) {
      connection.endedAtMs = now
      connection.stopRequests()
      end(socket)
    }
  }

  return {
    /** The record of an open socket, or a new one for a socket whose TLS handshake has failed. */
    of: (socket: Socket): Connection => open.get(socket) ?? new Connection(socket, drain.isRefusing()),
    openConnections: () => open.size,
    visit: (mayEnd: boolean): void => {
      for (const connection of open.values()) visitOne(connection, mayEnd)
    },
    /** Closes every connection at once, even with requests in flight. */
    destroy: (): void => {
      for (const socket of open.keys()) socket.destroy()
      for (const socket of accepted) socket.destroy()
    },
  }
}
