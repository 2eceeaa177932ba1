import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type Connection, connectionOf, stopRequests } from './connection.ts'
import type { Drain, DrainableServer } from './drain.ts'

/** An idle connection is ended after this time without a byte. Before that, its client may be about to use it. */
const idleMs = 1_000
/**
 * The time in which a client may close a connection that kith has ended. An earlier close could reset it before the
 * client has read the end.
 */
const lingerMs = 1_000

type TrackingOptions = {
  /** The open sockets at a time. A connection without a request has no tenant yet, so only this limit covers it. */
  max: number
  drain: Drain
  /**
   * Writes a last response to an idle connection and ends it. The response answers a request that is on its way in that
   * moment; kith does not start that request.
   */
  end: (socket: Socket) => void
}

export type OpenConnections = Pick<DrainableServer, 'openConnections' | 'visit'> & {
  /** Closes every connection at once, even with requests under way. */
  destroy(): void
}

/** Tracks the open connections of a server. Closes each one beyond the maximum at once. */
export function trackConnections(server: HttpServer, { max, drain, end }: TrackingOptions): OpenConnections {
  const accepted = new Set<Socket>()
  // HTTPS uses a TLS socket on top of the accepted one.
  const open = new Set<Connection>()
  server.on('connection', (socket: Socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
    if (accepted.size > max) socket.destroy()
  })
  server.on(server instanceof HttpsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    const connection = connectionOf(socket)
    connection.isRefusedByDrain = drain.isRefusing()
    open.add(connection)
    socket.once('close', () => open.delete(connection))
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
      stopRequests(connection)
      end(socket)
    }
  }

  return {
    openConnections: () => open.size,
    visit: mayEnd => {
      for (const connection of open) visitOne(connection, mayEnd)
    },
    destroy: () => {
      for (const { socket } of open) socket.destroy()
      for (const socket of accepted) socket.destroy()
    },
  }
}
