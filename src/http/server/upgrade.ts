import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { stopParser } from './stop-parser.ts'

const ending = Symbol('ending')

/**
 * Ends a connection with the answer to a request that carries `Upgrade`. The request itself is answered as any other (RFC 9110,
 * 7.8). But Node drops the bytes that arrive behind it in the same chunk and reads the next chunk as the start of a request: a
 * body would be carried out. Answers whether the request is to be dropped, because it comes behind such a request.
 */
export function isBehindUpgrade(request: IncomingMessage, response: ServerResponse): boolean {
  const socket: Socket & { [ending]?: true } = request.socket
  if (socket[ending]) return true
  if (request.headers.upgrade === undefined) return false
  socket[ending] = true
  response.setHeader('Connection', 'close')
  stopParser(socket)
  return false
}
