import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { isIdle, refuseFurtherRequests } from '../overload/connection-limits.ts'
import type { Drain, DrainableServer } from './drain.ts'

/** An idle connection is ended after this time without a byte. Before that, its client may be about to use it. */
const idleMs = 1_000
/**
 * The time in which a client may close a connection that kith has ended. An earlier close could reset it before the
 * client has read the end.
 */
const lingerMs = 1_000

type State = { bytes: number; quietSinceMs: number; endedAtMs?: number }

const refusedByDrain = Symbol('refused by drain')
type MarkedSocket = Socket & { [refusedByDrain]?: true }

/** Whether a connection was opened after the drain began to refuse new ones. */
export const isRefusedByDrain = (socket: MarkedSocket): boolean => socket[refusedByDrain] === true

export type OpenConnections = Pick<DrainableServer, 'count' | 'visit'> & {
  /** Closes every connection at once, even with requests under way. */
  destroy(): void
}

/**
 * Tracks the open connections of a server. `end` writes a last response to an idle connection and ends it. The response
 * answers a request that is on its way in that moment; kith does not start that request.
 */
export function trackConnections(server: HttpServer, drain: Drain, end: (socket: Socket) => void): OpenConnections {
  const accepted = new Set<Socket>()
  // HTTPS uses a TLS socket on top of the accepted one.
  const open = new Map<Socket, State>()
  server.on('connection', (socket: Socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
  })
  server.on(server instanceof HttpsServer ? 'secureConnection' : 'connection', (socket: MarkedSocket) => {
    if (drain.isRefusing()) socket[refusedByDrain] = true
    open.set(socket, { bytes: 0, quietSinceMs: performance.now() })
    socket.once('close', () => open.delete(socket))
  })

  function visitOne(socket: Socket, state: State, mayEnd: boolean) {
    const now = performance.now()
    const bytes = socket.bytesRead + socket.bytesWritten
    if (state.endedAtMs !== undefined) {
      if (now - state.endedAtMs >= lingerMs) socket.destroy()
    } else if (bytes !== state.bytes) {
      state.bytes = bytes
      state.quietSinceMs = now
    } else if (mayEnd && isIdle(socket) && now - state.quietSinceMs >= idleMs) {
      state.endedAtMs = now
      refuseFurtherRequests(socket)
      end(socket)
    }
  }

  return {
    count: () => open.size,
    visit: mayEnd => {
      for (const [socket, state] of open) visitOne(socket, state, mayEnd)
    },
    destroy: () => {
      for (const socket of [...open.keys(), ...accepted]) socket.destroy()
    },
  }
}
