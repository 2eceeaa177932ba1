import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../config.ts'
import { refuse } from '../errors.ts'
import { securityHeaders } from './headers.ts'
import { failure } from './reply.ts'
import { requestId } from './server.ts'

const refusal = refuse('operation_failed', 'The service has more to do than it can: ask again in a second.', {
  status: 503,
  headers: { 'Retry-After': '1' },
})

/** Stands for the request id in the prepared text. Past U+00FF it would make the text, each part of it, twice as long. */
const mark = '\u{ff}'

/**
 * Answers that the service is busy, past all that an ordinary answer goes through and with a text that is prepared: when
 * there is too much to do, a no must cost next to nothing. `closing` ends the connection with it.
 */
export function answererOf(config: Pick<Config, 'tls' | 'cors_origins'>) {
  const [before = '', between = '', after = ''] = failure(refusal, mark).split(mark)
  const constant = Object.entries({
    ...securityHeaders(config),
    ...refusal.headers,
    'Content-Type': 'application/json; charset=utf-8',
  }).flat()
  const origins = new Set(config.cors_origins)
  return ({ headers }: IncomingMessage, response: ServerResponse, { closing }: { closing: boolean }): void => {
    const request_id = requestId(headers['x-request-id'])
    const body = `${before}${request_id}${between}${request_id}${after}`
    const lines = [...constant, 'X-Request-Id', request_id, 'Content-Length', `${body.length}`]
    if (closing) lines.push('Connection', 'close')
    const { origin } = headers
    if (origin !== undefined && origins.has(origin))
      lines.push(
        'Access-Control-Allow-Origin',
        origin,
        'Vary',
        'Origin',
        'Access-Control-Expose-Headers',
        'Retry-After',
      )
    response.writeHead(refusal.status, lines)
    response.end(body, 'latin1')
  }
}
