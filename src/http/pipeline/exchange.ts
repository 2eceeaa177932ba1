import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CachedToken } from '../../auth/authenticator.ts'
import type { EndSpan } from '../../process/observer.ts'
import { Cancellation } from '../../process/signal.ts'
import type { Caller } from '../../route/caller.ts'
import type { Route } from '../../route/route.ts'
import { createRefusal, type ErrorCode, Fault, type Refusal } from '../../values/errors.ts'
import { hasBody, incompleteBody, readBody, throwIfTooLarge } from '../input/body.ts'
import type { Connection } from '../server/connections.ts'
import { failure, problem, problemType } from './reply.ts'
import { sendStream } from './streams.ts'

/** Processes and answers a request after its body, if any, has arrived. An exception becomes an error response. */
export type Handle = (exchange: Exchange, body: Buffer | undefined) => void | Promise<void>

/** A method and path outside the route table. It needs no API token. */
export type OpenEndpoint = {
  method: Route['method']
  path: string
  /** The limit of a body in bytes, if it differs from the usual one. */
  bodyBytes?: number
  /** Checks a request before its body is read. Throws a Fault to refuse it, or answers it. */
  check?(exchange: Exchange): void | Promise<void>
  handle: Handle
}

export const jsonType = 'application/json; charset=utf-8'
/** The media type of JSON lines, in requests and responses. */
export const ndjsonType = 'application/x-ndjson'

/** Releases the slot of a request. Must be called once, when the request is over. */
export type Leave = () => void

/**
 * A request with a slot, or one that gets its slot when its body is complete. `enter` takes the slot and throws a Fault
 * of 503 if none is free. Until then, `leave` ends the wait for the body. `recalledToken` is the cached token of the
 * request.
 */
export type Admission = { leave: Leave; enter?: () => Leave; recalledToken?: CachedToken | undefined }

/** The time limit for a body that kith awaits without a slot (gate.ts). */
const bodyMs = 2_000

type ExchangeOptions = {
  id: string
  url: string
  requestMs: number
  /** The headers of every response, as alternating names and values. */
  headers: readonly string[]
  /** Whether this response closes its connection. */
  shouldClose: (exchange: Exchange) => boolean
  admission: Admission
}

/**
 * A request and its response. Headers are set by name until the response is sent. Only the first response is sent, and
 * later ones are ignored.
 */
export class Exchange {
  readonly connection: Connection
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The request id, which occurs in the response, the log and the change log. */
  readonly id: string
  /** The request target, normalized by `parseTarget`. */
  readonly url: string
  readonly startedMs = performance.now()
  readonly deadline: Deadline
  /** Alternating names and values, in the form that Node accepts. An object per response costs twice as much. */
  readonly #headers: string[]
  readonly #shouldClose: (exchange: Exchange) => boolean
  readonly #requestMs: number
  readonly #enter: (() => Leave) | undefined
  readonly recalledToken: CachedToken | undefined
  #leave: Leave | undefined

  // The log, the metrics, an error response and the end of a request read these fields. They are set as the request
  // proceeds.
  /** The documented form of its path, or undefined if the path is unknown. */
  route: string | undefined
  /** The statuses of its endpoint that differ from the usual ones. */
  statuses: Route['statuses']
  /** The key of its caller's organization. */
  organization: string | undefined
  /** The caller of a row, as soon as kith has authenticated it. */
  caller: Caller | undefined
  /** The error code of a refused request. */
  refused: ErrorCode | undefined
  /** The time at which the request began to wait for events. Undefined for a request that does not follow. */
  followsSinceMs: number | undefined
  /** The span of the current stage, if there is a tracer. */
  span: EndSpan | undefined
  /**
   * The progress of the request: its work begins when the complete request has arrived, and ends when it is answered.
   */
  #state: 'arriving' | 'working' | 'done' = 'arriving'
  #afterWork: (() => void) | undefined
  /** Whether the endpoint only reads. If so, the request is cancelled when its client disconnects. */
  isRead = false

  /** Starts the deadline. */
  constructor(connection: Connection, request: IncomingMessage, response: ServerResponse, options: ExchangeOptions) {
    this.connection = connection
    this.request = request
    this.response = response
    this.id = options.id
    this.url = options.url
    this.#headers = [...options.headers, 'X-Request-Id', options.id]
    this.#shouldClose = options.shouldClose
    this.#requestMs = options.requestMs
    this.#enter = options.admission.enter
    this.#leave = options.admission.leave
    this.recalledToken = options.admission.recalledToken
    const firstMs = this.#enter ? Math.min(bodyMs, options.requestMs) : options.requestMs
    this.deadline = new Deadline(firstMs, fault => this.#expire(fault))
  }

  /** Sets a header. Replaces the header of this name whose value begins with `prefix`. */
  header(name: string, value: string, prefix = ''): void {
    const headers = this.#headers
    let index = 0
    while (index < headers.length && !(headers[index] === name && headers[index + 1]!.startsWith(prefix))) index += 2
    headers[index] = name
    headers[index + 1] = value
  }

  /** Sets a cookie. Replaces a cookie of this name that the response already sets. */
  setCookie(cookie: string): void {
    this.header('Set-Cookie', cookie, cookie.slice(0, cookie.indexOf('=') + 1))
  }

  /** Adds a request header on which the response depends. */
  varyBy(name: string): void {
    const index = this.#headers.indexOf('Vary')
    this.header('Vary', index === -1 ? name : `${this.#headers[index + 1]}, ${name}`)
  }

  headers(values: Record<string, string>): void {
    for (const name in values) this.header(name, values[name]!)
  }

  /** Sends a response with a body, of JSON by default. */
  send(status: number, body: string | Buffer, contentType = jsonType): void {
    if (this.response.headersSent) return
    const bytes = Buffer.byteLength(body)
    this.header('Content-Type', contentType)
    this.header('Content-Length', String(bytes))
    // ASCII is sent as Latin-1. For UTF-8, Node allocates three times the memory, with a call of malloc for a page.
    this.#writeHead(status).end(body, bytes === body.length ? 'latin1' : 'utf8')
  }

  /** Sends a response without a body. */
  sendNothing(status: 204 | 304): void {
    if (!this.response.headersSent) this.#writeHead(status).end()
  }

  /** Sends a body in parts as they are produced. This ends the request's deadline; see {@link sendStream}. */
  async sendParts(
    status: number,
    parts: AsyncIterable<string | Buffer>,
    { contentType, idleMs }: { contentType: string; idleMs: number },
  ): Promise<void> {
    this.deadline.end()
    this.header('Content-Type', contentType)
    await sendStream(this.#writeHead(status), parts, idleMs)
  }

  /** Sends a refusal. This is the only place that builds an error response from one. */
  refuse(refusal: Refusal): void {
    if (!this.response.headersSent) this.refused = refusal.code
    if (refusal.headers) this.headers(refusal.headers)
    if (this.request.headers.accept?.includes(problemType))
      this.send(refusal.status, problem(refusal, this.id), problemType)
    else this.send(refusal.status, failure(refusal, this.id))
  }

  /**
   * Requests the body if the client waits for that (`Expect: 100-continue`). Must be called before the body is read. If
   * a request is refused before, the client sends no body, and Node closes the connection after the response.
   */
  requestBody(): void {
    const { headers, httpVersion } = this.request
    if (headers.expect !== undefined && httpVersion === '1.1' && hasBody(this.request)) this.response.writeContinue()
  }

  /** Reads the whole body of a request that has one. Throws a Fault of 413 if it is larger than `maxBytes`. */
  readBody(maxBytes: number): Promise<Buffer> {
    throwIfTooLarge(this.request, maxBytes)
    this.requestBody()
    return readBody(this.request, maxBytes)
  }

  /** Ends the span of a stage. */
  endSpan(failed = false): void {
    this.span?.(failed)
    this.span = undefined
  }

  get isWorking(): boolean {
    return this.#state === 'working'
  }

  /**
   * Begins the work. Takes the slot if the gate has deferred that until the body is complete. Throws the gate's Fault
   * of 503 if no slot is free, and the Fault of its deadline. A request whose connection has closed would never release
   * its slot.
   */
  enter(): void {
    this.deadline.signal.throwIfAborted()
    if (this.#enter) this.#enterLate(this.#enter)
    this.#state = 'working'
  }

  #enterLate(enter: () => Leave) {
    if (this.connection.socket.destroyed) throw incompleteBody
    this.#leave = undefined
    this.#leave = enter()
    this.deadline.restart(this.#requestMs - (performance.now() - this.startedMs))
  }

  /** Must be called once, when the request is answered and its work has ended. */
  endWork(): void {
    this.#state = 'done'
    this.#afterWork?.()
  }

  /** Calls `work` when the request's work has ended, or at once if none is in progress. */
  afterWork(work: () => void): void {
    if (this.isWorking) this.#afterWork = work
    else work()
  }

  /** Calls `release` when the request releases its slot, or at once if it has done so. */
  leaveWith(release: Leave): void {
    const leave = this.#leave
    this.#leave = () => {
      leave?.()
      release()
    }
    if (!leave) this.leave()
  }

  /** Releases the slot of the request, once: when it ends, or when it begins to wait for events. */
  leave(): void {
    this.#leave?.()
    this.#leave = undefined
  }

  #expire({ refusal }: Fault): void {
    if (this.#state !== 'arriving') return
    // The body is still incomplete. No other code checks the deadline while kith waits for it.
    this.header('Connection', 'close')
    this.refuse(refusal)
  }

  #writeHead(status: number): ServerResponse {
    // The header is set only now, so that requests that were in flight at the start of a drain close their connections
    // too.
    if (this.#shouldClose(this)) this.header('Connection', 'close')
    return this.response.writeHead(status, this.#headers)
  }
}

/**
 * The time limit of a request, including the wait for a database connection. When it passes, the signal aborts with a
 * Fault of 504, and then `onExpired` is called. `end` must be called when the request is over.
 */
export class Deadline {
  readonly signal: Cancellation = new Cancellation()
  readonly #onExpired: (fault: Fault) => void
  #limitMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(limitMs: number, onExpired: (fault: Fault) => void = () => {}) {
    this.#onExpired = onExpired
    this.#limitMs = limitMs
    this.#start()
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Restarts the timer with another limit. */
  restart(limitMs: number): void {
    clearTimeout(this.#timer)
    this.#limitMs = limitMs
    this.#start()
  }

  /** Runs work under the request's deadline or, if that has ended, under a separate deadline. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    if (this.#timer) return work()
    this.#start()
    return work().finally(() => this.end())
  }

  #start() {
    this.#timer = setTimeout(() => {
      const fault = buildTimeoutFault(this.#limitMs)
      this.signal.abort(fault)
      this.#onExpired(fault)
    }, this.#limitMs)
  }
}

function buildTimeoutFault(requestMs: number): Fault {
  const message = `The request took longer than ${Math.round(requestMs) / 1000} seconds and was cancelled.`
  return new Fault(createRefusal('operation_failed', message, { status: 504 }))
}
