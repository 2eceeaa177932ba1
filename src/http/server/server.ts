import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../../process/config.ts'
import { createRefusal, type Refusal } from '../../values/errors.ts'
import { tooLargeHeaders } from '../input/request-head.ts'
import { draining, type Gate } from '../overload/gate.ts'
import { failure } from '../pipeline/reply.ts'
import { type Connection, type OpenConnections, trackConnections } from './connections.ts'
import type { Drain, DrainTimes } from './drain.ts'
import { type Listening, listen } from './listening.ts'
import { readTls } from './tls.ts'

// An import of node:http reads all its properties, and reading WebSocket loads undici: 0.055 s of processor time.
const { createServer: createHttpServer } = process.getBuiltinModule('node:http')

/** The service on Node's own server. */
export type App = ReturnType<typeof createServer>

const minConnectionTimeoutMs = 2_000
/** An idle connection stays open for this time. */
export const keepAliveMs = 72_000

/** Answers a request of a connection, or refuses it. */
export type Serve = (connection: Connection, request: IncomingMessage, response: ServerResponse) => void

type Settings = { config: Config; logger: Logger; drain: Drain }

/** Creates a server that passes each request to `serve`. */
export function createServer(settings: Settings, gate: Pick<Gate, 'inFlight' | 'stop'>, serve: Serve) {
  const { config, logger, drain } = settings
  const { limits, tls } = config
  const options = {
    // The parser counts the target of the request as well. request-head.ts compares the headers alone.
    maxHeaderSize: limits.headerBytes + limits.urlBytes,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    // A request without a body is not a stream and emits no events: a tenth more GETs a second, measured alternately.
    optimizeEmptyRequests: true,
    headersTimeout: limits.requestMs,
    // The deadline limits the time of a whole request (exchange.ts).
    requestTimeout: 0,
    keepAliveTimeout: keepAliveMs,
    // This is Node's own default without TLS.
    allowHalfOpen: true,
  }
  const server = tls ? https.createServer({ ...options, ...readTls(tls) }) : createHttpServer(options)
  const connections = trackConnections(server, {
    max: 2 * limits.connections,
    drain,
    end: socket => endWith(socket, draining),
  })
  const receive = createReceiver(drain, connections, serve)
  server.on('request', receive)
  // Closes a connection without traffic, such as one whose client does not read its response.
  server.setTimeout(Math.max(2 * limits.requestMs, minConnectionTimeoutMs))
  server.on('clientError', (error, socket) => answerClientError(error, connections.of(socket as Socket)))
  answerHalfClosed(server)
  // Without a listener, Node answers an unknown expectation itself, not in kith's error format.
  server.on('checkExpectation', receive)
  // Without a listener, Node requests every body that a client offers (Exchange.requestBody).
  server.on('checkContinue', receive)
  server.once('close', gate.stop)
  // This server never listens. Connections within the process need no TLS.
  const inner = createHttpServer(options, receive)
  let listening: Listening | undefined
  return {
    server,
    /** Resolves with the address, `http://127.0.0.1:8080`. */
    listen: async (requested: { host: string; port: number }): Promise<string> => {
      listening = await listen(server, requested)
      const { address, port } = listening
      const url = `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
      logger.info(`listening at ${url}`)
      return url
    },
    /** Opens a connection within the process, as a client of this address. Its requests take the same pipeline. */
    connect: (remoteAddress: string): Duplex => {
      const [client, socket] = duplexPair()
      // Destroying one side does not end the other, which may wait until it can write.
      client.once('close', () => socket.destroy())
      inner.emit('connection', Object.assign(socket, { remoteAddress }))
      return client
    },
    /**
     * Answers the requests in flight and those that arrive on open connections, and stops listening; see {@link Drain}.
     */
    drain: (times: DrainTimes): Promise<void> => {
      const { openConnections, visit } = connections
      const stopListening = async () => listening?.stop()
      return drain.begin({ inFlight: gate.inFlight, openConnections, visit, stopListening }, times)
    },
    /** Refuses new connections and closes the open ones at once. */
    close: async (): Promise<void> => {
      const closed = listening?.close()
      connections.destroy()
      // The server no longer listens. This stops the timer with which Node checks connections.
      server.close()
      await closed
    },
  }
}

/**
 * Returns the listener for requests. While the server stops listening, requests on new connections wait for its end. A
 * connection that is about to close starts no further request.
 */
function createReceiver(drain: Drain, connections: OpenConnections, serve: Serve): RequestListener {
  const serveLate = (connection: Connection, request: IncomingMessage, response: ServerResponse): void => {
    // An earlier request may have closed the connection meanwhile.
    const isOver = connection.isClosing && connection.newest !== request
    if (!isOver && !connection.socket.destroyed) serve(connection, request, response)
  }
  return (request, response) => {
    const connection = connections.of(request.socket)
    if (connection.isClosing) return
    connection.newest = request
    connection.closeAfterUpgrade(request, response)
    const stopping = connection.isRefusedByDrain ? drain.stopping() : undefined
    if (stopping) void stopping.then(() => serveLate(connection, request, response))
    else serve(connection, request, response)
  }
}

/** If a client has ended its sending side, its connection closes after this time without traffic. */
const halfClosedMs = 2_000

/**
 * Answers the requests of a client that has ended its sending side, and then closes the connection. A disconnected
 * client looks the same until kith sends to it. So such a connection must not be silent for long, because its reads
 * would continue.
 */
function answerHalfClosed(server: DuplexServer): void {
  // Without this, Node ends its side too, and drops the responses.
  server.httpAllowHalfOpen = true
  server.on(server instanceof https.Server ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.once('end', () => socket.setTimeout(halfClosedMs))
  })
}

type DuplexServer = (Server | https.Server) & { httpAllowHalfOpen?: boolean }

const clientErrors: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: tooLargeHeaders.refusal,
  ERR_HTTP_REQUEST_TIMEOUT: createRefusal('operation_failed', 'The request did not arrive in time.', { status: 504 }),
}

const reasons: Record<number, string> = {
  400: 'Bad Request',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/**
 * Answers input that Node's parser rejects and that has no request or an incomplete one. The requests before it are
 * answered first.
 */
function answerClientError(error: Error & { code?: string }, connection: Connection): void {
  const { socket } = connection
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
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

/** Writes a refusal without a request, and ends the connection. */
function endWith(socket: Socket, refusal: Refusal): void {
  const request_id = randomUUID()
  const body = failure(refusal, request_id)
  const headers = Object.entries(refusal.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${refusal.status} ${reasons[refusal.status]}\r\nConnection: close\r\nX-Request-Id: ${request_id}\r\n` +
      headers.join('') +
      `Date: ${new Date().toUTCString()}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
