import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify'
import type { Config } from '../config.ts'
import { Fault, type Refusal, refuse } from '../errors.ts'
import { securityHeaders } from './headers.ts'
import { logRequest } from './log.ts'
import { failure } from './reply.ts'
import { readTarget } from './target.ts'
import { readTls } from './tls.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** As it was sent, whatever it was. */
    content_type: string | undefined
  }
}

const request_id_form = /^[\w-]{1,64}$/

/** The caller's request id where it has the documented form, else a fresh one. */
export function requestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && request_id_form.test(header) ? header : randomUUID()
}

const least_connection_ms = 2_000

/** A Fastify instance that answers in our envelopes only, and leaves bodies as bytes for our own binding rules. */
export function createServer(config: Config, logger: FastifyBaseLogger): FastifyInstance {
  const { limits, tls, behind_proxy } = config
  const parser = { maxHeaderSize: limits.header_bytes, connectionsCheckingInterval: 1_000, requireHostHeader: false }
  const options = {
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: (request: { headers: Record<string, string | string[] | undefined> }) =>
      requestId(request.headers['x-request-id']),
    bodyLimit: limits.body_bytes,
    requestTimeout: limits.request_ms,
    // A connection on which nothing moves, because the client does not read its answer, is no longer held.
    connectionTimeout: Math.max(2 * limits.request_ms, least_connection_ms),
    return503OnClosing: false,
    // Closing comes after draining: what is open then is idle, or out of time.
    forceCloseConnections: true,
    // Our proxies append to X-Forwarded-For; what stands before their entries anybody may have written.
    trustProxy: behind_proxy > 0 && ((_address: string, hop: number) => hop < behind_proxy),
    routerOptions: { maxParamLength: limits.url_bytes, ignoreTrailingSlash: false, caseSensitive: true },
    // Fastify hands on one of the two: with TLS, what stands under `http` would be lost.
    ...(tls ? { https: { ...parser, ...readTls(tls) } } : { http: parser }),
    rewriteUrl: ({ url = '/' }: IncomingMessage) => readTarget(url),
    clientErrorHandler: answerClientError,
    frameworkErrors: (error: Error & { statusCode?: number }, request: FastifyRequest, reply: FastifyReply) => {
      reply.raw.once('close', () => logRequest(request, reply))
      sendRefusal(reply.headers(securityHeaders(config)), refusalOfFramework(error), request.id)
    },
  } as unknown as FastifyServerOptions
  const server = Fastify(options) as unknown as FastifyInstance
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  return server
}

/** Refuses what is HTTP, but not as we take it, once the request has its id and is counted. */
export function refuseMalformed(server: FastifyInstance): void {
  // Node would answer an expectation that it does not know by itself, without our envelope.
  const unknown_expectations = new WeakSet<IncomingMessage>()
  server.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    unknown_expectations.add(request)
    server.server.emit('request', request, response)
  })
  server.decorateRequest('content_type')
  server.addHook('onRequest', (request, _reply, done) => {
    const malformed = malformedBy(request.raw, unknown_expectations)
    if (malformed) return done(new Fault(malformed))
    request.content_type = request.headers['content-type']
    // Fastify answers 415 to a content type it cannot read; to us it is one that is not JSON.
    if (request.content_type !== undefined) request.headers['content-type'] = 'application/octet-stream'
    done()
  })
}

function malformedBy(request: IncomingMessage, unknown_expectations: WeakSet<IncomingMessage>): Refusal | undefined {
  if (request.headers.host === undefined && request.httpVersion === '1.1')
    return refuse('invalid_parameter', 'An HTTP/1.1 request names its Host.')
  if (unknown_expectations.has(request))
    return refuse('invalid_parameter', 'The Expect header is not one that is known.')
  return undefined
}

/** Answers a refusal: the one place that makes an error response out of one. */
export function sendRefusal(reply: FastifyReply, refusal: Refusal, request_id: string): void {
  reply
    .code(refusal.status)
    .header('Content-Type', 'application/json; charset=utf-8')
    .header('X-Request-Id', request_id)
  for (const [name, value] of Object.entries(refusal.headers ?? {})) reply.header(name, value)
  reply.send(failure(refusal, request_id))
}

/** What Fastify refuses by itself, in our words: bodies too large, broken addresses, broken lengths. */
export function refusalOfFramework(error: { statusCode?: number; code?: string }): Refusal {
  const status = error.statusCode ?? 500
  if (status === 413) return refuse('invalid_parameter', 'The body is too large.', { status })
  if (status === 414) return refuse('invalid_parameter', 'The path or query is too long.', { status })
  if (status === 415) return refuse('invalid_parameter', 'The content type or encoding is not supported.', { status })
  if (status < 500) return refuse('invalid_parameter', 'The request is malformed.')
  return refuse('operation_failed', 'The operation failed.')
}

const client_errors: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refuse('invalid_parameter', 'The headers are too large.', { status: 431 }),
  ERR_HTTP_REQUEST_TIMEOUT: refuse('operation_failed', 'The request did not arrive in time.', { status: 504 }),
}

const reasons: Record<number, string> = {
  400: 'Bad Request',
  431: 'Request Header Fields Too Large',
  504: 'Gateway Timeout',
}

/** Answers what is no HTTP request: the parser's refusals arrive here, before there is a request. */
function answerClientError(error: Error & { code?: string }, socket: import('node:net').Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const refusal = client_errors[error.code ?? ''] ?? refuse('invalid_parameter', 'The request is not valid HTTP.')
  const request_id = randomUUID()
  const body = failure(refusal, request_id)
  socket.end(
    `HTTP/1.1 ${refusal.status} ${reasons[refusal.status]}\r\nConnection: close\r\nX-Request-Id: ${request_id}\r\n` +
      'Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n' +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
