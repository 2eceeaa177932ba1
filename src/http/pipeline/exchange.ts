import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../../auth/caller.ts'
import type { ErrorWord, Refusal } from '../../errors.ts'
import type { Deadline } from './deadline.ts'
import { failure } from './reply.ts'
import type { Route } from './route.ts'
import { sendStream } from './streams.ts'

/** A method and path that kith serves. */
export type Endpoint = {
  method: Route['method']
  /** The documented form, such as `/v1/people/{external_id}`. */
  path: string
  /** The row of the route table; absent outside `/v1`. */
  row?: Route
  /** The limit of a body in bytes, if it is not the usual one. */
  bodyBytes?: number
  /** Whether the handler reads the body itself, as it arrives. */
  streams?: boolean | undefined
  /** Checks the request before its body is read. Throws a Fault to refuse it. */
  guard?(exchange: Exchange): void | Promise<void>
  /** Processes and answers the request. An exception becomes an error response. */
  handle(exchange: Exchange): void | Promise<void>
}

export const jsonType = 'application/json; charset=utf-8'
/** The media type of JSON lines, in requests and responses. */
export const ndjsonType = 'application/x-ndjson'

/**
 * A request and its response. Headers are set by name until the response is sent. The first response is sent; later
 * ones are ignored.
 */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The request id, which occurs in the response, the log and the change log. */
  readonly id: string
  /** The request target, normalized by `parseTarget`. */
  readonly url: string
  readonly startedMs = performance.now()
  /** Alternating names and values, as Node accepts them. An object per response costs twice as much. */
  readonly #headers: string[]
  readonly #shouldClose: (exchange: Exchange) => boolean
  /** The endpoint of the path; undefined before it is looked up, or if there is none. */
  endpoint: Endpoint | undefined
  caller: Caller | undefined
  /** Set on admission, before any other step. */
  deadline!: Deadline
  /** The raw body; undefined if there is none. */
  body: Buffer | undefined
  /** The error code of a refused request. */
  refused: ErrorWord | undefined
  /** When the request began to wait for events; undefined for a request that does not follow. */
  followsSinceMs: number | undefined
  /** The handler's work; set when the complete request has arrived. */
  work: Promise<unknown> | undefined

  /**
   * `headers` are those of every response, as alternating names and values. `shouldClose` tells whether this response
   * closes its connection.
   */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    options: { id: string; url: string; headers: readonly string[]; shouldClose: (exchange: Exchange) => boolean },
  ) {
    this.request = request
    this.response = response
    this.id = options.id
    this.url = options.url
    this.#headers = options.headers.slice()
    this.#headers.push('X-Request-Id', options.id)
    this.#shouldClose = options.shouldClose
  }

  header(name: string, value: string): void {
    const headers = this.#headers
    let index = 0
    while (index < headers.length && headers[index] !== name) index += 2
    headers[index] = name
    headers[index + 1] = value
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
  sendNothing(status: 204): void {
    if (!this.response.headersSent) this.#writeHead(status).end()
  }

  /** Sends a body in parts as they are produced. The request's deadline ends here; see {@link sendStream}. */
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
    if (!this.response.headersSent) this.refused = refusal.word
    if (refusal.headers) this.headers(refusal.headers)
    this.send(refusal.status, failure(refusal, this.id))
  }

  #writeHead(status: number): ServerResponse {
    // Set as late as this, so that requests that were under way when a drain began close their connections too.
    if (this.#shouldClose(this)) this.header('Connection', 'close')
    return this.response.writeHead(status, this.#headers)
  }
}
