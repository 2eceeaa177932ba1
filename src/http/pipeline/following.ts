import type { Caller } from '../../auth/caller.ts'
import type { Exchange } from './exchange.ts'
import type { Following } from './route.ts'

/** Builds the `following` of a call. `authenticate` verifies the request's token. */
export function followingOf(exchange: Exchange, authenticate: () => Caller | Promise<Caller>): Following {
  const { request, response, deadline } = exchange
  return {
    lastEventId: request.headers['last-event-id'] as string | undefined,
    begin: () => {
      exchange.followsSinceMs = performance.now()
      deadline.end()
      exchange.leave()
      // Node sets the timeout of an idle connection again after the response.
      request.socket.setTimeout(0)
    },
    authenticate,
    disconnect: () => void response.destroy(),
  }
}
