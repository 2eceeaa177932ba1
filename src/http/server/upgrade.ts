import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { stopParser } from './stop-parser.ts'

const isEnding = Symbol('is ending')

/**
 * Closes a connection after the response to a request with `Upgrade`. kith answers that request like any other (RFC
 * 9110, 7.8). But Node drops the bytes behind it in the same chunk and reads the next chunk as the start of a request,
 * so it would run a body as a request. Returns whether a request must be dropped because it follows such a request.
 */
export function isBehindUpgrade(request: IncomingMessage, response: ServerResponse): boolean {
  const socket: Socket & { [isEnding]?: true } = request.socket
  if (socket[isEnding]) return true
  if (request.headers.upgrade === undefined) return false
  socket[isEnding] = true
  response.setHeader('Connection', 'close')
  stopParser(socket)
  return false
}
