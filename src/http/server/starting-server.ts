import http, { type RequestListener } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Config } from '../../process/config.ts'
import { version } from '../../process/version.ts'
import { createRefusal } from '../../values/errors.ts'
import { requestId } from '../input/request-head.ts'
import { failure, success } from '../pipeline/reply.ts'
import { securityHeaders } from './headers.ts'
import { listen } from './listening.ts'
import { readTls } from './tls.ts'

/** A server that answers instead of the service while the database is unavailable. */
export type StartingServer = Pick<AddressInfo, 'address' | 'port'> & { close(): Promise<void> }

/**
 * Listens at the address of the service, and answers `/healthz` with 200 and everything else with 503. It reads no body
 * and keeps no connection, so it ends at once when the service takes over. Rejects with the system's error, such as
 * EADDRINUSE.
 */
export async function listenWhileStarting(config: Pick<Config, 'host' | 'port' | 'tls'>): Promise<StartingServer> {
  const always = { ...securityHeaders(config), 'Content-Type': 'application/json; charset=utf-8', Connection: 'close' }
  const answer: RequestListener = ({ url = '', headers }, response) => {
    const [path] = url.split('?')
    if (path === '/healthz') return response.writeHead(200, always).end(success({ data: { healthy: true, version } }))
    const message = 'The service is starting: it waits for its database. Retry later.'
    const request_id = requestId(headers['x-request-id'])
    const refusal = createRefusal('operation_failed', message, { status: 503 })
    response.writeHead(503, { ...always, 'Retry-After': '1', 'X-Request-Id': request_id })
    return response.end(failure(refusal, request_id))
  }
  const server = config.tls ? https.createServer(readTls(config.tls), answer) : http.createServer(answer)
  const { address, port, close } = await listen(server, config)
  return {
    address,
    port,
    close: () => {
      const closed = close()
      server.closeAllConnections()
      return closed
    },
  }
}
