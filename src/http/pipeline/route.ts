import type { TSchema } from 'typebox'
import type { Caller } from '../../auth/caller.ts'
import type { Config } from '../../config.ts'
import type { Database, DatabasePool } from '../../db/db.ts'
import type { ErrorCode, Refusal } from '../../errors.ts'
import type { Release } from '../../fair-pool.ts'
import type { RequestKey, StoredResponse } from '../../idempotency/kept-responses.ts'
import { isWriting, type Scope } from '../../scopes.ts'
import type { Signal } from '../../signal.ts'
import type { CheckText } from '../input/json.ts'
import type { Preferences } from '../input/preferences.ts'

/**
 * Where a write notes the number of a change of its organization, once it is committed or all of its transaction is done: the log up to
 * it includes the write. 0 before, and for a write that the log does not tell of. The response has it in the header X-Kith-Sequence. A dry
 * run of a write of definitions notes the entries that the log would get.
 */
export type Written = { sequence: number; changes?: readonly object[] }

/** The header of a write's response with the number of the change log that includes it, see {@link Written}. */
export const sequenceHeader = 'X-Kith-Sequence'

/** The argument of a handler: everything that the pipeline has established about a request. */
export type Call<Body = unknown> = {
  db: Database
  limits: Config['limits']
  caller: Caller
  /** Path parameters by name, percent-decoded once and checked. */
  params: Record<string, string>
  /** The bound, trimmed and validated body. */
  body: Body
  boundFrom: 'body' | 'query'
  /** The length of the raw body or query string. */
  bytes: number
  preferences: Preferences
  /** The media type that the client prefers to JSON, of the row's `mediaTypes`; undefined for JSON. */
  mediaType: string | undefined
  /** Whether the query has `dry_run=true`. Only true on rows with `dryRun`. */
  isDryRun: boolean
  /** Whether `db` is a standby, which may be older than the primary. */
  isReader: boolean
  written: Written
  /** Only on a row that keeps its responses itself, for a request with an Idempotency-Key. */
  keyed?: Keyed
  request_id: string
  /** Returns the URL of the address that the client is connected to, without a slash at the end. Headers do not change it. */
  localUrl: () => string
  /** Memory for large responses, in bytes, within the organization's share (fair-pool.ts). */
  memory: {
    tryTake(bytes: number): Release | undefined
    take(bytes: number): Promise<Release>
  }
  /**
   * Runs the work for a part of a response with a deadline of its own. The request's deadline ends with the first part.
   */
  within: <T>(work: () => Promise<T>) => Promise<T>
  /** Aborts at the deadline. Running statements are then cancelled on the server. */
  signal: Signal
}

/** A request with an Idempotency-Key, for a handler that keeps the response in the transaction of its write. */
export type Keyed = {
  key: RequestKey
  /** Set when the write begins, which then looks up the key. */
  hasBegun: boolean
  /** The form in which a result, or the refusal that `handle` throws, is kept. Undefined for a refusal that is not. */
  toKept(handle: () => HandlerResult): StoredResponse | undefined
  /** The result that was kept. Throws a refusal. */
  replay(response: StoredResponse): HandlerResult
}

/** The call of a batch. */
export type BatchCall<Body = unknown> = Call<Body> & {
  /** Validates an element against the route's `item` schema and the limits of a body. Throws a Fault. */
  checkItem: (value: unknown) => Record<string, unknown>
}

/** The handler of a long response receives this besides its call. */
export type StreamState = {
  /** Returns the refusal for an error. Logs the error if it is a fault of kith or of the database. */
  explain: (error: unknown) => Refusal
  /** Whether the service is shutting down, so that the stream should end. */
  draining: () => boolean
}

/** The call of a row whose request may wait for events. Its `body` is the query. */
export type FollowingCall<Query = unknown> = Call<Query> & StreamState & { following: Following }

/** The call of a row whose body is JSON lines. Its `body` is the query. */
export type StreamingCall<Query = unknown> = Call<Query> &
  StreamState & {
    /** The body's bytes as they arrive. Throws if the connection closes, or if no data arrives in time. */
    chunks: AsyncIterable<Buffer>
    /** Parses a line and validates it against the route's `line` schema and the limits of a body. Throws a Fault. */
    checkLine: (line: Buffer) => Record<string, unknown> | Promise<Record<string, unknown>>
  }

/** A request that may wait for events, for longer than its deadline. */
export type Following = {
  /** The header Last-Event-ID of a client of server-sent events that connects again. */
  lastEventId: string | undefined
  /**
   * Ends the deadline and takes the request out of the requests under way, so that it holds back no other one. The
   * handler limits the number of such requests itself.
   */
  begin(): void
  /** Verifies the request's token again. Throws a Fault of 401 if it is no longer valid. */
  authenticate(): Caller | Promise<Caller>
  /** Closes the connection of a client that does not read. */
  disconnect(): void
}

/**
 * The result of a handler: the payload of the success envelope, as data or as JSON text. `release` gives back the
 * memory taken for it; it is called once the response is sent.
 */
export type EnvelopeResult = { status: number; headers?: Record<string, string>; release?: Release } & (
  | { data: unknown }
  | { json: string }
)

/**
 * The payload as JSON in parts, with back-pressure. An error before the first part becomes an error response. A later
 * error closes the connection, so that a client never takes a part for the whole. The generator is always iterated.
 */
export type ChunkedResult = { status: number; headers?: Record<string, string>; parts: AsyncGenerator<Buffer> }

/**
 * The result of a streaming row: JSON lines, or another media type. An error closes the connection, so that a client
 * never takes a part for the whole.
 */
export type StreamResult = {
  status: number
  headers?: Record<string, string>
  stream: AsyncIterable<string | Buffer>
  contentType?: string
}

/** A response of the row's `answerType`, sent as it is. */
export type PlainResult = {
  status: number
  headers?: Record<string, string>
  body: string | Buffer
  contentType: string
}

export type HandlerResult = EnvelopeResult | ChunkedResult | StreamResult | PlainResult

/** The check a path parameter must pass before the handler runs. A `count` is a number from 0, a `path` the rest of the path with its slashes. */
export type ParameterKind = 'external_id' | 'uuid' | 'object_id' | 'key' | 'client_id' | 'number' | 'count' | 'path'

/** A row of a module's route table. */
export type Route = PlainRoute | BatchRoute | StreamingRoute | FollowingRoute

type PlainRoute = RouteDescription & {
  item?: undefined
  line?: undefined
  follows?: undefined
  handle(call: Call): Promise<HandlerResult>
}

type BatchRoute = RouteDescription & {
  /** The schema of each element's body. */
  item: TSchema
  line?: undefined
  follows?: undefined
  handle(call: BatchCall): Promise<HandlerResult>
}

type StreamingRoute = RouteDescription & {
  streams: true
  /** The schema of each line of the body. */
  line: TSchema
  item?: undefined
  follows?: undefined
  handle(call: StreamingCall): Promise<StreamResult>
}

type FollowingRoute = RouteDescription & {
  /** The request may wait for events, for longer than its deadline. */
  follows: true
  item?: undefined
  line?: undefined
  handle(call: FollowingCall): Promise<HandlerResult>
}

/**
 * When a client may send a request again whose response was lost. `read`: always, because it changes nothing. `safe`: always, because
 * the second time it changes nothing more. `keyed`: under an Idempotency-Key. `versioned`: with a version in If-Match. `once`: never.
 */
export type Repetition = 'read' | 'safe' | 'keyed' | 'versioned' | 'once'

/**
 * The scope is required, so no route is open by mistake. `statuses` holds the exceptions of the contract: the status of an
 * error code on this endpoint, if it differs from the usual one.
 */
type RouteDescription = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The documented form, such as `/v1/people/{external_id}`. */
  path: string
  params?: Record<string, ParameterKind>
  scope: Scope
  operationId: string
  summary: string
  /** The resource under which the documentation lists the endpoint. */
  tag: string
  /** Details beyond the summary, in Markdown. */
  description?: string
  body?: TSchema
  /** Checks the text of a large JSON body for what is over a limit, before it is parsed. Throws a Fault of 400. */
  checkText?: CheckText
  /** The shape of `data` on success. Tests validate every response against it; the service itself does not. */
  answer: TSchema
  /** The statuses of success with their descriptions, if there are others than 200. */
  successes?: Record<number, string>
  /** The examples to show, if they are not the first of the schemas' own `examples`. */
  example?: { body?: unknown; answer?: unknown }
  /**
   * Whether the endpoint addresses one entity with a version: a read returns its ETag, a write honors If-Match. `request`: the write
   * honors If-Match, and its response has no ETag.
   */
  versioned?: boolean | 'request'
  /**
   * On a write that returns an entity, the scope needed to read it, and the fields that a token without that scope
   * receives.
   */
  reveals?: { scope: Scope; identifiers: readonly string[] }
  /**
   * On a write, the shape of `data` if the query has `dry_run=true`: the handler then stores nothing and answers 200. A write whose
   * body or query has a member `dry_run` needs none. Any other write refuses the parameter.
   */
  dryRun?: TSchema
  /** The supported preferences of the `Prefer` header. */
  prefers?: readonly ('return=representation' | 'references=strict' | 'erased=recreate' | 'handling=strict')[]
  /**
   * The handler's own refusals, as error codes by status. Those of the pipeline, the 404 of a path parameter and
   * If-Match are added.
   */
  refusals?: Partial<Record<number, ErrorCode>>
  /** Whether the handler keeps the response to an Idempotency-Key in the transaction of its write, see {@link Keyed}. */
  keepsResponses?: (call: Call) => boolean
  /** Whether the response shows a secret, which kith does not store. The row then ignores an Idempotency-Key. */
  showsSecret?: true
  /** When a client may send a write again, if it is not what {@link repetitionOf} derives. */
  repeats?: Repetition
  /** Whether a request with neither a body nor a query uses the defaults instead of being refused. */
  hasDefaults?: boolean
  /** Whether the read runs on a standby where there is one, as reads do that are long or that need not be of this moment. */
  prefersReader?: true
  /** Whether the response is JSON lines, each of the shape `answer`. */
  streams?: boolean
  /** The media type of the response, if it is neither JSON nor JSON lines. `answer` is then its shape, without the envelope. */
  answerType?: string
  /** The media types that Accept can choose instead of JSON, with the shape of a line or of the whole. */
  mediaTypes?: Record<string, TSchema>
  /** Headers of a success that no other row has, with their descriptions. */
  successHeaders?: Record<string, string>
  /** On a row without a body, the schema of the query, which becomes the call's `body`. */
  query?: TSchema
  /** The limit of the body in bytes, if it is not the usual one. */
  bodyBytes?: number
  statuses?: Partial<Record<ErrorCode, number>>
}

/**
 * A path outside `/v1`, which needs no token. It describes the endpoint for the OpenAPI document, without a handler.
 */
export type OpenRoute = Pick<Route, 'path' | 'operationId' | 'summary' | 'tag' | 'description' | 'refusals'> & {
  /** The default is GET. */
  method?: 'POST'
  request?: { contentType: string; body: TSchema }
  /** The media type of the response, if it is not JSON. */
  answerType?: string
  /** The shape of the response or, if it is enveloped, of `data` in the success envelope. */
  answer: TSchema
  enveloped: boolean
  /** Refusals in the format of another standard instead of kith's error format, by status. */
  ownRefusals?: Record<number, { description: string; answer: TSchema }>
}

/** A request for a page. The path names what it may see, so it needs no token of the API. */
export type PageCall = {
  db: DatabasePool
  limits: Config['limits']
  /** The last segment of the path. */
  token: string
  /** The body of a POST. Undefined if it is empty. */
  body: Buffer | undefined
  contentType: string | undefined
  /** The address of the client; see `clientAddress`. */
  address: string
  userAgent: string | undefined
  acceptLanguage: string | undefined
  request_id: string
  /** Aborts at the deadline. */
  signal: Signal
}

/** A page in HTML. It may load nothing but the styles, which are all its `style` element contains, and submits forms to kith. */
export type HtmlPage = { status: number; html: string; style: string }

/** A page for people at a path outside `/v1`: what GET shows and what POST changes. */
export type PageRoute = {
  /** A path with one parameter at its end. */
  path: string
  /** The limit of the body of a POST in bytes. */
  bodyBytes: number
  show(call: PageCall): Promise<HtmlPage>
  submit(call: PageCall): Promise<HtmlPage>
  /** The page for a request that is refused or fails. */
  refuse(call: PageCall, refusal: Refusal): HtmlPage
}

/**
 * Whether a row honors Idempotency-Key: every write but DELETE, streams and those that show a secret. A POST that only reads ignores it.
 */
export function honorsIdempotencyKey({
  method,
  scope,
  streams,
  showsSecret,
}: Pick<Route, 'method' | 'scope' | 'streams' | 'showsSecret'>): boolean {
  return method !== 'GET' && method !== 'DELETE' && scope.endsWith(':write') && !streams && !showsSecret
}

/** When a client may send a request of the row again, from its method and scope unless the row says it. */
export function repetitionOf(
  row: Pick<Route, 'method' | 'scope' | 'streams' | 'showsSecret' | 'versioned' | 'repeats'>,
): Repetition {
  if (!isWriting(row.scope, row.method)) return 'read'
  if (row.repeats) return row.repeats
  if (row.method === 'POST') return honorsIdempotencyKey(row) ? 'keyed' : 'once'
  return row.method === 'PATCH' && row.versioned ? 'versioned' : 'safe'
}

/** How a write takes `dry_run` from the query: it has an answer for it, it has the member in its body or query, or it refuses it. */
export function dryRunSupport({ dryRun, body, query }: Pick<Route, 'dryRun' | 'body' | 'query'>): {
  isAnswered: boolean
  isBodyMember: boolean
  isQueryMember: boolean
} {
  const hasMember = (schema: TSchema | undefined) =>
    schema !== undefined && 'dry_run' in ((schema as { properties?: object }).properties ?? {})
  return { isAnswered: dryRun !== undefined, isBodyMember: hasMember(body), isQueryMember: hasMember(query) }
}

/** Defines a row whose handler has the type of the validated body. */
export function route<Body>(row: RouteDescription & { handle(call: Call<Body>): Promise<HandlerResult> }): Route {
  return row as Route
}
