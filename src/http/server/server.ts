import { randomUUID } from 'node:crypto'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { Fault, type Refusal, refuse } from '../../errors.ts'
import { parseTarget } from '../input/request-target.ts'
import { mayEndConnection } from '../overload/connection-limits.ts'
import { draining } from '../pipeline/admission.ts'
import { Exchange } from '../pipeline/exchange.ts'
import { failure } from '../pipeline/reply.ts'
import type { Drain, DrainTimes } from './drain.ts'
import { type Listening, listen } from './listening.ts'
import { trackConnections } from './open-connections.ts'
import { securityHeaders } from './security-headers.ts'
import { isStopped } from './stop-parser.ts'
import { readTls } from './tls.ts'

/** The service on Node's own server. */
export type App = {
  server: http.Server | https.Server
  /** Resolves with the address, `http://127.0.0.1:8080`. */
  listen(on: { host: string; port: number }): Promise<string>
  /** Answers what is under way or still comes by open connections, and stops listening; see {@link Drain}. */
  drain(times: DrainTimes): Promise<void>
  /** Takes no more connections and ends those that are open, at once. */
  close(): Promise<void>
}

const requestIdForm = /^[\w-]{1,64}$/
const leastConnectionMs = 2_000
/** So long a connection stays open on which nothing is asked. */
export const keepAliveMs = 72_000

type Settings = { config: Config; logger: Logger; drain: Drain }

/** A server that hands every request to `take`, as an exchange that has its id and the headers of every answer. */
export function createServer({ config, logger, drain }: Settings, take: (exchange: Exchange) => void): App {
  const isLast = (exchange: Exchange) => !drain.accepting() && mayEndConnection(exchange)
  const headers = Object.entries(securityHeaders(config)).flat()
  const receive = (request: IncomingMessage, response: ServerResponse) => {
    const id = requestId(request.headers['x-request-id'])
    take(new Exchange(request, response, { id, url: parseTarget(request.url ?? '/'), headers, isLast }))
  }
  const { limits, tls } = config
  const options = {
    maxHeaderSize: limits.headerBytes,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    // What has no body is no stream, and nothing is emitted for it: a tenth more GETs a second in alternation.
    optimizeEmptyRequests: true,
    headersTimeout: limits.requestMs,
    // The time of a whole request is its deadline's to keep (admission.ts).
    requestTimeout: 0,
    keepAliveTimeout: keepAliveMs,
  }
  const server = tls
    ? https.createServer({ ...options, ...readTls(tls) }, receive)
    : http.createServer(options, receive)
  // A connection on which nothing moves, because the client does not read its answer, is no longer held.
  server.setTimeout(Math.max(2 * limits.requestMs, leastConnectionMs))
  server.on('clientError', answerClientError)
  // Node would answer an expectation that it does not know by itself, without our envelope.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    unknownExpectations.add(request)
    receive(request, response)
  })
  const connections = trackConnections(server, drain, socket => endWith(socket, draining.refusal))
  let listening: Listening | undefined
  return {
    server,
    listen: async on => {
      listening = await listen(server, on)
      const { address, port } = listening
      const url = `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
      logger.info(`listening at ${url}`)
      return url
    },
    drain: times => {
      const { count, visit } = connections
      return drain.begin({ count, visit, stopListening: () => void listening?.close() }, times)
    },
    close: async () => {
      const closed = listening?.close()
      connections.destroy()
      // It listens no more: this ends the timer by which Node checks connections.
      server.close()
      await closed
    },
  }
}

/** The caller's request id where it has the documented form, else a fresh one. */
export function requestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && requestIdForm.test(header) ? header : randomUUID()
}

const unknownExpectations = new WeakSet<IncomingMessage>()

/** Throws a Fault for what is HTTP, but not as we take it. */
export function refuseMalformed({ request }: Exchange): void {
  if (request.headers.host === undefined && request.httpVersion === '1.1') throw withoutHost
  if (request.headers.expect !== undefined && unknownExpectations.has(request)) throw unknownExpectation
}

const withoutHost = new Fault(refuse('invalid_parameter', 'An HTTP/1.1 request names its Host.'))
const unknownExpectation = new Fault(refuse('invalid_parameter', 'The Expect header is not one that is known.'))

/** The address of the client. Our proxies append to X-Forwarded-For; what stands before their entries anybody may have written. */
export function clientAddress({ socket, headers }: IncomingMessage, proxies: number): string {
  const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
  const chain = [socket.remoteAddress ?? '', ...forwarded.map(entry => entry.trim()).reverse()].filter(Boolean)
  return chain[Math.min(proxies, chain.length - 1)] ?? ''
}

const clientErrors: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refuse('invalid_parameter', 'The headers are too large.', { status: 431 }),
  ERR_HTTP_REQUEST_TIMEOUT: refuse('operation_failed', 'The request did not arrive in time.', { status: 504 }),
}

const reasons: Record<number, string> = {
  400: 'Bad Request',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/** Answers what is no HTTP request: the parser's refusals arrive here, before there is a request. */
function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  if (isStopped(socket)) {
    socket.pause()
    return
  }
  endWith(socket, clientErrors[error.code ?? ''] ?? refuse('invalid_parameter', 'The request is not valid HTTP.'))
}

/** Writes a refusal that answers no request of ours, and ends the connection. */
function endWith(socket: Socket, refusal: Refusal): void {
  const request_id = randomUUID()
  const body = failure(refusal, request_id)
  const headers = Object.entries(refusal.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${refusal.status} ${reasons[refusal.status]}\r\nConnection: close\r\nX-Request-Id: ${request_id}\r\n` +
      headers.join('') +
      'Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n' +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
