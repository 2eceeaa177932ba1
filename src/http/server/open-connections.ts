import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { isIdle, refuseFurtherRequests } from '../overload/connection-limits.ts'
import type { Drain, Drained } from './drain.ts'

/** An idle connection is ended after so long without a byte: its client may be about to use it. */
const idleMs = 1_000
/** How long a client has to close a connection that was ended. Closed at once, it could be reset before the end is read. */
const lingerMs = 1_000

type State = { bytes: number; quietSinceMs: number; endedAtMs?: number }

const late = Symbol('late')
type Marked = Socket & { [late]?: true }

/** Whether a connection was made when the drain refused new ones. */
export const isLate = (socket: Marked): boolean => socket[late] === true

export type OpenConnections = Pick<Drained, 'count' | 'visit'> & {
  /** Closes every connection at once, whatever is under way on it. */
  destroy(): void
}

/**
 * Knows the open connections of a server. `end` writes the last words to an idle connection and ends it: a request that is
 * on its way in that moment is answered by them, and is not begun.
 */
export function trackConnections(server: HttpServer, drain: Drain, end: (socket: Socket) => void): OpenConnections {
  const accepted = new Set<Socket>()
  // HTTPS speaks on a socket of its own, above the one that was accepted.
  const open = new Map<Socket, State>()
  server.on('connection', (socket: Socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
  })
  server.on(server instanceof HttpsServer ? 'secureConnection' : 'connection', (socket: Marked) => {
    if (drain.refusing()) socket[late] = true
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
