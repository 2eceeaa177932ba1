import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { createRefusal, Fault, type Refusal } from '../../errors.ts'
import { parseTarget } from '../input/request-target.ts'
import { mayEndConnection } from '../overload/connection-limits.ts'
import { draining } from '../overload/refusals.ts'
import { type Admission, Exchange } from '../pipeline/exchange.ts'
import { failure } from '../pipeline/reply.ts'
import { type Connection, closeAfterUpgrade, connectionOf } from './connection.ts'
import type { Drain, DrainableServer, DrainTimes } from './drain.ts'
import { type Listening, listen } from './listening.ts'
import { trackConnections } from './open-connections.ts'
import { securityHeaders } from './security-headers.ts'
import { readTls } from './tls.ts'

// An import of node:http reads its properties, and that of WebSocket loads undici: 0.055 s of processor time.
const { createServer: createHttpServer } = process.getBuiltinModule('node:http')

/** The service on Node's own server. */
export type App = {
  server: Server | https.Server
  /** Resolves with the address, `http://127.0.0.1:8080`. */
  listen(on: { host: string; port: number }): Promise<string>
  /** Answers requests that are under way or arrive on open connections, and stops listening; see {@link Drain}. */
  drain(times: DrainTimes): Promise<void>
  /** Refuses new connections and closes the open ones at once. */
  close(): Promise<void>
}

const requestIdPattern = /^[\w-]{1,64}$/
const minConnectionTimeoutMs = 2_000
/** An idle connection stays open for this time. */
export const keepAliveMs = 72_000

/** Sheds load before a request costs anything. */
export type Gate = Pick<DrainableServer, 'inFlight'> & {
  /**
   * Admits a request for `url`, a normalized request target. If the result is undefined, the request is refused and must not
   * be started.
   */
  admit(connection: Connection, request: IncomingMessage, response: ServerResponse, url: string): Admission | undefined
  /** Must be called when the server has closed. */
  stop(): void
}

/** Answers a request, and counts it out when it is over. */
export type Serve = (exchange: Exchange) => void

type Settings = { config: Config; logger: Logger; drain: Drain }

/** Makes a server that passes each admitted request to `serve`. */
export function createServer(settings: Settings, gate: Gate, serve: Serve): App {
  const { config, logger, drain } = settings
  const { limits, tls } = config
  const receive = createReceiver(settings, gate, serve)
  const options = {
    maxHeaderSize: limits.headerBytes,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    // A request without a body is not a stream and emits no events: a tenth more GETs a second, measured in
    // alternation.
    optimizeEmptyRequests: true,
    headersTimeout: limits.requestMs,
    // The deadline limits the time of a whole request (exchange.ts).
    requestTimeout: 0,
    keepAliveTimeout: keepAliveMs,
    // Node's own default without TLS.
    allowHalfOpen: true,
  }
  const server = tls ? https.createServer({ ...options, ...readTls(tls) }, receive) : createHttpServer(options, receive)
  // Closes a connection without traffic, such as one whose client does not read its response.
  server.setTimeout(Math.max(2 * limits.requestMs, minConnectionTimeoutMs))
  server.on('clientError', answerClientError)
  answerHalfClosed(server)
  // Otherwise Node answers an unknown expectation by itself, without kith's error format.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    unknownExpectations.add(request)
    receive(request, response)
  })
  // Otherwise Node asks for every body that a client offers (Exchange.requestBody).
  server.on('checkContinue', receive)
  server.once('close', gate.stop)
  const connections = trackConnections(server, {
    max: 2 * limits.connections,
    drain,
    end: socket => endWith(socket, draining),
  })
  let listening: Listening | undefined
  return {
    server,
    listen: async requested => {
      listening = await listen(server, requested)
      const { address, port } = listening
      const url = `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
      logger.info(`listening at ${url}`)
      return url
    },
    drain: times => {
      const { openConnections, visit } = connections
      const stopListening = async () => listening?.stop()
      return drain.begin({ inFlight: gate.inFlight, openConnections, visit, stopListening }, times)
    },
    close: async () => {
      const closed = listening?.close()
      connections.destroy()
      // The server no longer listens. This stops the timer with which Node checks connections.
      server.close()
      await closed
    },
  }
}

/** Returns the listener for requests. It makes an exchange of each one, with its id and its deadline. */
function createReceiver({ config, drain }: Settings, gate: Gate, serve: Serve) {
  const { limits } = config
  const shouldClose = ({ connection, request }: Exchange) =>
    !drain.isAccepting() && mayEndConnection(connection, request)
  const headers = Object.entries(securityHeaders(config)).flat()
  const start = (connection: Connection, request: IncomingMessage, response: ServerResponse): void => {
    const url = parseTarget(request.url ?? '/')
    const admission = gate.admit(connection, request, response, url)
    if (!admission) return
    const id = requestId(request.headers['x-request-id'])
    const requestMs = Math.min(limits.requestMs, drain.leftMs())
    serve(new Exchange(connection, request, response, { id, url, requestMs, headers, shouldClose, admission }))
  }
  const startLate = (connection: Connection, request: IncomingMessage, response: ServerResponse): void => {
    // One of the requests before it may have closed the connection meanwhile.
    const isOver = connection.isClosing && connection.newest !== request
    if (!isOver && !connection.socket.destroyed) start(connection, request, response)
  }
  return (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connectionOf(request.socket)
    if (connection.isClosing) return
    connection.newest = request
    closeAfterUpgrade(connection, request, response)
    const stopping = connection.isRefusedByDrain ? drain.stopping() : undefined
    if (stopping) void stopping.then(() => startLate(connection, request, response))
    else start(connection, request, response)
  }
}

/** The time without a byte after which a connection closes whose client sends nothing more. */
const halfClosedMs = 2_000

/**
 * Answers the requests of a client that has ended its sending side, and then closes the connection. A client that is gone looks the same
 * until something is sent to it, so such a connection must not be silent for long: its reads would run on.
 */
function answerHalfClosed(server: DuplexServer): void {
  // Otherwise Node ends its side too, and drops the responses.
  server.httpAllowHalfOpen = true
  server.on(server instanceof https.Server ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.once('end', () => socket.setTimeout(halfClosedMs))
  })
}

type DuplexServer = (Server | https.Server) & { httpAllowHalfOpen?: boolean }

/** The client's X-Request-Id if it has the documented form, otherwise a new UUID. */
export function requestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && requestIdPattern.test(header) ? header : randomUUID()
}

const unknownExpectations = new WeakSet<IncomingMessage>()

/**
 * Throws a Fault of 400 for a request of another version than HTTP/1.0 and 1.1, for one with several Host headers, for an
 * HTTP/1.1 request without any, and for an unknown Expect header.
 */
export function throwIfMalformed({ request }: Exchange): void {
  const { headers, httpVersion, rawHeaders } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') throw unknownVersion
  const hosts = countHosts(rawHeaders)
  if (hosts > 1) throw severalHosts
  if (hosts === 0 && httpVersion === '1.1') throw missingHost
  if (headers.expect !== undefined && unknownExpectations.has(request)) throw unknownExpectation
}

/** Node keeps the first of several Host headers, and a proxy in front of kith may have used another. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}

// Node's parser reads a line without a version as HTTP/0.9, and accepts HTTP/2.0.
const unknownVersion = new Fault(
  createRefusal('invalid_parameter', 'The only supported versions are HTTP/1.1 and HTTP/1.0.'),
)
const severalHosts = new Fault(createRefusal('invalid_parameter', 'A request must have only one Host header.'))
const missingHost = new Fault(createRefusal('invalid_parameter', 'An HTTP/1.1 request must have a Host header.'))
const unknownExpectation = new Fault(
  createRefusal('invalid_parameter', 'The only supported Expect header is 100-continue.'),
)

/**
 * The address of the client. Trusted proxies append to X-Forwarded-For; a client may have forged the entries before
 * theirs.
 */
export function clientAddress({ socket, headers }: IncomingMessage, proxies: number): string {
  const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
  const chain = [socket.remoteAddress ?? '', ...forwarded.map(entry => entry.trim()).reverse()].filter(Boolean)
  return chain[Math.min(proxies, chain.length - 1)] ?? ''
}

const clientErrors: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: createRefusal('invalid_parameter', 'The headers are too large.', { status: 431 }),
  ERR_HTTP_REQUEST_TIMEOUT: createRefusal('operation_failed', 'The request did not arrive in time.', { status: 504 }),
}

const reasons: Record<number, string> = {
  400: 'Bad Request',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/**
 * Answers input that Node's parser rejects, for which there is no request, or whose request is incomplete. The requests before it are
 * answered first.
 */
function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const connection = connectionOf(socket)
  // The parser was stopped, or its input follows the last request of the connection.
  if (connection.isClosing) {
    socket.pause()
    return
  }
  connection.isClosing = true
  const refusal = clientErrors[error.code ?? ''] ?? createRefusal('invalid_parameter', 'The request is not valid HTTP.')
  connection.onAnswered = () => {
    const isIncomplete = connection.newest?.complete === false
    if (connection.unanswered.size > (isIncomplete ? 1 : 0)) return
    connection.onAnswered = undefined
    if (socket.writable) endWith(socket, refusal)
  }
  connection.onAnswered()
}

/** Writes a refusal outside of any request, and ends the connection. */
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
