import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../../config.ts'
import type { Refusal } from '../../errors.ts'
import { failure } from '../pipeline/reply.ts'
import { securityHeaders } from '../server/security-headers.ts'
import { requestId } from '../server/server.ts'

/**
 * The placeholder of the request id in the prepared text. With a character above U+00FF, V8 would store the text and
 * each part of it with two bytes a character.
 */
const idPlaceholder = '\u{ff}'

/** Answers a request with a refusal; `closing` closes the connection after the response. */
type SendRefusal = (request: IncomingMessage, response: ServerResponse, closing: boolean) => void

/**
 * Prepares the responses with a refusal of the gate. They bypass the usual path of a response and use a prepared text,
 * because a refusal must cost next to nothing under load.
 */
export function prepareRefusal(refusal: Refusal, config: Pick<Config, 'tls' | 'corsOrigins'>): SendRefusal {
  const [before = '', between = '', after = ''] = failure(refusal, idPlaceholder).split(idPlaceholder)
  const constantLines = Object.entries({
    ...securityHeaders(config),
    ...refusal.headers,
    'Content-Type': 'application/json; charset=utf-8',
  }).flat()
  const origins = new Set(config.corsOrigins)
  return ({ headers }, response, closing) => {
    const request_id = requestId(headers['x-request-id'])
    const body = `${before}${request_id}${between}${request_id}${after}`
    const lines = [...constantLines, 'X-Request-Id', request_id, 'Content-Length', `${body.length}`]
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
