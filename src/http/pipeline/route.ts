import type { TSchema } from 'typebox'
import type { Caller } from '../../auth/caller.ts'
import type { Scope } from '../../auth/scopes.ts'
import type { Config } from '../../config.ts'
import type { Database } from '../../db/db.ts'
import type { ErrorWord, Refusal } from '../../errors.ts'
import type { Signal } from '../../signal.ts'
import type { Preferences } from '../input/preferences.ts'
import type { Release } from '../overload/response-memory.ts'

/** What a handler is given: everything the pipeline has established about one request. */
export type Call<Body = unknown> = {
  db: Database
  limits: Config['limits']
  caller: Caller
  /** Path parameters by name, percent-decoded once and checked. */
  params: Record<string, string>
  /** Bound, trimmed and validated. */
  body: Body
  boundFrom: 'body' | 'query'
  /** Of the raw body or query string. */
  bytes: number
  preferences: Preferences
  /** One element of a batch, held to the route's `item` schema and the limits of a body of its own; throws a Fault. */
  checkItem: (value: unknown) => Record<string, unknown>
  /** Of a streaming row: the body's bytes as they arrive. Throws where the connection breaks, or nothing comes for long. */
  chunks: AsyncIterable<Buffer>
  /** One line of them, held to the route's `item` schema and the limits of a body of its own; throws a Fault. */
  checkLine: (line: Buffer) => Record<string, unknown>
  /** What an error is answered with; where it is a fault of ours, the log says so. */
  explain: (error: unknown) => Refusal
  /** Whether the service is shutting down, so that a stream should come to its end. */
  draining: () => boolean
  request_id: string
  /** Memory for an answer that is too large to be counted as nothing, as the organization's share allows (answer-memory.ts). */
  memory: {
    take(bytes: number): Release | undefined
    wait(bytes: number): Promise<Release>
  }
  /** Gives the work behind a part of an answer its own time, once the request's has ended with the first part. */
  within: <T>(work: () => Promise<T>) => Promise<T>
  /** Aborts when the request's time is over: statements under it are cancelled on the server. */
  signal: Signal
}

/**
 * What a handler answers: the payload of the success envelope, as data or as JSON text. `release` gives back the memory that was taken
 * for it, once it is sent.
 */
export type EnvelopeResult = { status: number; headers?: Record<string, string>; release?: Release } & (
  | { data: unknown }
  | { json: string }
)

/**
 * The payload as JSON in parts, of which no more is made than the client reads. What throws before the first part is answered as an error;
 * later the connection is cut, so that half is never taken for the whole. It is iterated in any case.
 */
export type ChunkedResult = { status: number; headers?: Record<string, string>; parts: AsyncGenerator<Buffer> }

/** What a streaming row answers: lines of JSON. Where it throws, the connection is cut: half is never taken for the whole. */
export type StreamResult = { status: number; headers?: Record<string, string>; stream: AsyncIterable<string | Buffer> }

export type HandlerResult = EnvelopeResult | ChunkedResult | StreamResult

/** The check a path parameter must pass before the handler runs. */
export type ParameterKind = 'external_id' | 'uuid' | 'object_id' | 'key' | 'number'

/**
 * One row of a room's route table. The scope is required: a route cannot be open by forgetting. `statuses` holds the
 * quirks of the contract: the status an error word has on this endpoint where it differs from everywhere else.
 */
export type Route = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** As documented: `/v1/people/{external_id}`. */
  path: string
  params?: Record<string, ParameterKind>
  scope: Scope
  operationId: string
  summary: string
  /** The resource it belongs to, as the documentation groups them. */
  tag: string
  /** More than the summary says, in Markdown. */
  description?: string
  body?: TSchema
  /** The shape of `data` on success. Tests hold every answer to it; as it goes out nothing is validated or stripped. */
  answer: TSchema
  /** The statuses of success and what each says, where it is not 200 alone. */
  successes?: Record<number, string>
  /** Where the first of the schemas' own `examples` is not the one to show. */
  example?: { body?: unknown; answer?: unknown }
  /** Whether it is about one entity with a version: a read answers its ETag, a write honours If-Match. */
  versioned?: boolean
  /** Of a write that answers an entity: the scope that reading it takes, and the fields that a token without it is shown. */
  reveals?: { scope: Scope; identifiers: readonly string[] }
  /** The preferences of the `Prefer` header that make a difference. */
  prefers?: readonly ('return=representation' | 'references=strict' | 'handling=strict')[]
  /** What the handler refuses beyond the pipeline, a path parameter's 404 and If-Match: the word by its status. */
  refusals?: Partial<Record<number, ErrorWord>>
  /** Whether a request with neither a body nor a query means the defaults, instead of being refused. */
  hasDefaults?: boolean
  /** Of a batch or a stream: what each element's or line's body is held to by itself. */
  item?: TSchema
  /** Its answer is lines of JSON, any number of them, each of the shape `answer`; so is its body, where it has an `item`. */
  streams?: boolean
  /** Of a row without a body: what its query may hold, which then is the call's `body`. */
  query?: TSchema
  /** Bytes that the body may have, where it is not the usual limit. */
  bodyBytes?: number
  statuses?: Partial<Record<ErrorWord, number>>
  handle(call: Call): Promise<HandlerResult>
}

/** An address outside `/v1`, which wants no token. It has no handler here: the document needs none. */
export type OpenRoute = Pick<Route, 'path' | 'operationId' | 'summary' | 'tag' | 'description' | 'refusals'> & {
  /** GET unless it says otherwise. */
  method?: 'POST'
  request?: { contentType: string; body: TSchema }
  /** Its media type, where it is not JSON. */
  answerType?: string
  /** The shape of the whole answer; of `data`, where it comes in the envelope of success. */
  answer: TSchema
  enveloped: boolean
  /** What it refuses in the words of another standard, by status: without our envelope. */
  ownRefusals?: Record<number, { description: string; answer: TSchema }>
}

/** Whether a row honours Idempotency-Key: every write that is not one by nature, nor a stream. A POST that only reads ignores it. */
export function takesKeys({ method, scope, streams }: Pick<Route, 'method' | 'scope' | 'streams'>): boolean {
  return method !== 'GET' && method !== 'DELETE' && scope.endsWith(':write') && !streams
}

/** A row whose handler knows the type of the body that its schema has validated. */
export function route<Body>(row: Omit<Route, 'handle'> & { handle(call: Call<Body>): Promise<HandlerResult> }): Route {
  return row as Route
}
