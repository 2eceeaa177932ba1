import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../../config.ts'
import { refuse } from '../../errors.ts'
import { failure } from '../pipeline/reply.ts'
import { securityHeaders } from '../server/security-headers.ts'
import { keepAliveMs, requestId } from '../server/server.ts'

const refusal = refuse('operation_failed', 'The service has more to do than it can: ask again in a second.', {
  status: 503,
  headers: { 'Retry-After': '1' },
})

/** Stands for the request id in the prepared text. Past U+00FF it would make the text, each part of it, twice as long. */
const mark = '\u{ff}'

export type Answerer = {
  /** Answers a request; `closing` ends the connection with it. */
  answer(request: IncomingMessage, response: ServerResponse, of: { closing: boolean }): void
  /** The whole of an answer to an HTTP/1.1 request, byte for byte what the above would write. The connection stays. */
  text(request_id: string | undefined): string
}

/**
 * Answers that the service is busy, past all that an ordinary answer goes through and with a text that is prepared: when
 * there is too much to do, a no must cost next to nothing.
 */
export function overloadResponder(config: Pick<Config, 'tls' | 'corsOrigins'>): Answerer {
  const [before = '', between = '', after = ''] = failure(refusal, mark).split(mark)
  const bodyOf = (request_id: string) => `${before}${request_id}${between}${request_id}${after}`
  const constant = Object.entries({
    ...securityHeaders(config),
    ...refusal.headers,
    'Content-Type': 'application/json; charset=utf-8',
  })
  const constantLines = constant.flat()
  const origins = new Set(config.corsOrigins)
  const head = `HTTP/1.1 ${refusal.status} Service Unavailable\r\n${constant.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`
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
      response.writeHead(refusal.status, lines)
      response.end(body, 'latin1')
    },
    text: givenId => {
      const request_id = requestId(givenId)
      const body = bodyOf(request_id)
      const own = `X-Request-Id: ${request_id}\r\nContent-Length: ${body.length}\r\n`
      return `${head}${own}${dateLine()}${keepAlive}\r\n${body}`
    },
  }
}

/** Says the time as HTTP does, and looks up how once a second. */
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
