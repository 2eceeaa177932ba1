import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../../config.ts'
import { createRefusal } from '../../errors.ts'
import { failure } from '../pipeline/reply.ts'
import { securityHeaders } from '../server/security-headers.ts'
import { keepAliveMs, requestId } from '../server/server.ts'

/** The refusal of a request without a free slot. */
export const overloaded = createRefusal('operation_failed', 'The service is overloaded. Retry after 1 second.', {
  status: 503,
  headers: { 'Retry-After': '1' },
})

/**
 * The placeholder of the request id in the prepared text. With a character above U+00FF, V8 would store the text and
 * each part of it with two bytes a character.
 */
const idPlaceholder = '\u{ff}'

export type OverloadResponder = {
  /** Answers a request with 503; `closing` closes the connection after the response. */
  answer(request: IncomingMessage, response: ServerResponse, of: { closing: boolean }): void
  /** The complete response to an HTTP/1.1 request, byte for byte what `answer` writes. The connection stays open. */
  text(request_id: string | undefined): string
}

/**
 * Builds the 503 responses of an overload. They bypass the usual path of a response and use a prepared text, because a
 * refusal must cost next to nothing under load.
 */
export function createOverloadResponder(config: Pick<Config, 'tls' | 'corsOrigins'>): OverloadResponder {
  const [before = '', between = '', after = ''] = failure(overloaded, idPlaceholder).split(idPlaceholder)
  const bodyOf = (request_id: string) => `${before}${request_id}${between}${request_id}${after}`
  const constant = Object.entries({
    ...securityHeaders(config),
    ...overloaded.headers,
    'Content-Type': 'application/json; charset=utf-8',
  })
  const constantLines = constant.flat()
  const origins = new Set(config.corsOrigins)
  const head = `HTTP/1.1 ${overloaded.status} Service Unavailable\r\n${constant.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`
  const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveMs / 1_000}\r\n`
  const dateLine = createDateLine()
  return {
    answer: ({ headers }, response, { closing }) => {
      const request_id = requestId(headers['x-request-id'])
      const body = bodyOf(request_id)
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
      response.writeHead(overloaded.status, lines)
      response.end(body, 'latin1')
    },
    text: header => {
      const request_id = requestId(header)
      const body = bodyOf(request_id)
      const variableLines = `X-Request-Id: ${request_id}\r\nContent-Length: ${body.length}\r\n`
      return `${head}${variableLines}${dateLine()}${keepAlive}\r\n${body}`
    },
  }
}

/** Returns a function that gives the Date header, formatted once a second. */
function createDateLine(): () => string {
  let second = 0
  let line = ''
  return () => {
    const now = Math.floor(Date.now() / 1_000)
    if (now !== second) line = `Date: ${new Date(now * 1_000).toUTCString()}\r\n`
    second = now
    return line
  }
}
