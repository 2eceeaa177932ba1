import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../../auth/caller.ts'
import type { ErrorWord, Refusal } from '../../errors.ts'
import type { Deadline } from './deadline.ts'
import { failure } from './reply.ts'
import type { Route } from './route.ts'
import { sendStream } from './streams.ts'

/** What is served at an address. */
export type Endpoint = {
  method: Route['method']
  /** As documented: `/v1/people/{external_id}`. */
  path: string
  /** Of the route table; absent of what lies outside `/v1`. */
  row?: Route
  /** Bytes that a body may have, where it is not the usual limit. */
  bodyBytes?: number
  /** Whether the body is left to the handler, to be read as it arrives. */
  streams?: boolean | undefined
  /** Decides, before the body is read, whether the request is carried out: throws a Fault where it is not. */
  guard?(exchange: Exchange): void | Promise<void>
  /** Carries the request out and answers it. What it throws is answered as an error. */
  handle(exchange: Exchange): void | Promise<void>
}

export const jsonType = 'application/json; charset=utf-8'
/** What streams of lines of JSON are sent as, both ways. */
export const linesType = 'application/x-ndjson'

/**
 * One request and its answer, from the first byte to the last. Headers are set by name until the answer is sent, which
 * happens once: who comes second is not heard.
 */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The request's id, which the answer, the log and the change log name. */
  readonly id: string
  /** The target as everybody reads it. */
  readonly url: string
  readonly startedMs = performance.now()
  /** Names and values in turn, as Node takes them: an object that is put together for every answer costs twice as much. */
  readonly #headers: string[]
  readonly #isLast: (exchange: Exchange) => boolean
  /** What the address was found to be; undefined until then, and where there is none. */
  place: Endpoint | undefined
  caller: Caller | undefined
  /** Given on admission, which comes before everything else. */
  deadline!: Deadline
  /** The body as it was sent; undefined where there is none. */
  body: Buffer | undefined
  /** The word of the refusal that was answered. */
  refused: ErrorWord | undefined
  /** The handler's work, from the moment that the whole request is there. */
  work: Promise<unknown> | undefined

  /** `headers` are those of every answer, names and values in turn; `isLast` says whether the connection ends with it. */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    of: { id: string; url: string; headers: readonly string[]; isLast: (exchange: Exchange) => boolean },
  ) {
    this.request = request
    this.response = response
    this.id = of.id
    this.url = of.url
    this.#headers = of.headers.slice()
    this.#headers.push('X-Request-Id', of.id)
    this.#isLast = of.isLast
  }

  header(name: string, value: string): void {
    const headers = this.#headers
    let at = 0
    while (at < headers.length && headers[at] !== name) at += 2
    headers[at] = name
    headers[at + 1] = value
  }

  headers(values: Record<string, string>): void {
    for (const name in values) this.header(name, values[name]!)
  }

  /** Answers with a body, of JSON unless it says otherwise. */
  send(status: number, body: string | Buffer, contentType = jsonType): void {
    if (this.response.headersSent) return
    const bytes = Buffer.byteLength(body)
    this.header('Content-Type', contentType)
    this.header('Content-Length', String(bytes))
    // What is ASCII goes out as it is: for UTF-8 Node takes three times the room, a call of malloc for a page.
    this.#writeHead(status).end(body, bytes === body.length ? 'latin1' : 'utf8')
  }

  /** Answers that there is nothing to say. */
  sendNothing(status: 204): void {
    if (!this.response.headersSent) this.#writeHead(status).end()
  }

  /** Answers with parts of a body as they are made; each part of that work has its own time. See {@link sendStream}. */
  async sendParts(
    status: number,
    parts: AsyncIterable<string | Buffer>,
    { contentType, idleMs }: { contentType: string; idleMs: number },
  ): Promise<void> {
    this.deadline.end()
    this.header('Content-Type', contentType)
    await sendStream(this.#writeHead(status), parts, idleMs)
  }

  /** Answers a refusal: the one place that makes an error response out of one. */
  refuse(refusal: Refusal): void {
    if (!this.response.headersSent) this.refused = refusal.word
    if (refusal.headers) this.headers(refusal.headers)
    this.send(refusal.status, failure(refusal, this.id))
  }

  #writeHead(status: number): ServerResponse {
    // Said as late as this, it reaches those who were under way when draining began.
    if (this.#isLast(this)) this.header('Connection', 'close')
    return this.response.writeHead(status, this.#headers)
  }
}
