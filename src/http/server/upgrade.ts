import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Connection } from './connection.ts'
import { stopRequests } from './stop-parser.ts'

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
