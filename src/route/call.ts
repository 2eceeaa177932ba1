import type { Context } from '../db/context.ts'
import type { Config } from '../process/config.ts'
import type { Release } from '../process/fair-pool.ts'
import type { Signal } from '../process/signal.ts'
import type { Refusal } from '../values/errors.ts'
import type { Caller } from './caller.ts'
import type { IfMatch } from './entity-tag.ts'
import type { HandlerResult } from './result.ts'
import type { Shown } from './shown.ts'

/** The `If-Match` and `Prefer` headers of a request. */
export type Preferences = {
  if_match: IfMatch
  /** `return=representation`: a PUT or PATCH returns the entity instead of `true`. */
  representation: boolean
  /** `references=strict`: kith refuses relationship targets that do not exist instead of creating them. */
  references: 'create' | 'strict'
  /** `erased=recreate`: another person may get an identifier of an erased person. */
  erased: 'refuse' | 'recreate'
  /** `handling=strict`: kith refuses a request that would get a warning. */
  handling: 'lenient' | 'strict'
}

/**
 * A write stores here the number of a change of its organization, after its whole transaction. The log up to this
 * number includes the write. The number is 0 before that, and for a write without an entry in the log. The response has
 * it in the header X-Kith-Sequence. A dry run of a write of definitions stores the entries that the log would get.
 */
export type Written = { sequence: number; changes?: readonly object[] }

/** The header of a write's response with the change number up to which the log includes it, see {@link Written}. */
export const sequenceHeader = 'X-Kith-Sequence'

/** A request after the pipeline has read and checked it. */
export type Input<Body = unknown> = {
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
  /** The media type, one of the row's `mediaTypes`, that the client prefers to JSON. Undefined for JSON. */
  mediaType: string | undefined
  /** The header Accept-Language. */
  acceptLanguage: string | undefined
  /** Whether the query has `dry_run=true`. Only true on rows with `dryRun`. */
  isDryRun: boolean
  written: Written
  /** The people and records that the request shows or writes, for the access log. */
  shown: Shown
  /** Set for a request with an Idempotency-Key to a row that stores its responses itself. */
  keyed?: Keyed
  request_id: string
  /**
   * Returns the URL of the address that the client is connected to, without a slash at the end. Headers do not affect
   * it.
   */
  localUrl: () => string
  /** Memory for large responses, in bytes, within the organization's share (fair-pool.ts). */
  memory: {
    tryTake(bytes: number): Release | undefined
    take(bytes: number): Promise<Release>
  }
  /**
   * Runs the work for a part of a response with a separate deadline. The request's deadline ends with the first part.
   */
  within: <T>(work: () => Promise<T>) => Promise<T>
  /** Aborts at the deadline, which also cancels running statements on the server. */
  signal: Signal
}

/** The argument of a handler: the request, and its organization with the connections of the row's lane. */
export type Call<Body = unknown> = Input<Body> & {
  context: Context
  /** Whether the connections lead to a standby, which may be behind the primary. */
  isReader: boolean
}

/** A stored response. `body` is JSON text, of the data or of the refusal. */
export type StoredResponse = { status: number; headers: Record<string, string>; body: string }

/** The digests of a key with its caller and of the request, in hexadecimal. */
export type RequestKey = { id: string; request_sha256: string }

/** A request with an Idempotency-Key, for a handler that stores the response in the transaction of its write. */
export type Keyed = {
  key: RequestKey
  /** True once the write has begun, which then looks up the key. */
  hasBegun: boolean
  /**
   * The form in which a result, or a refusal thrown by `handle`, is stored. Undefined for a refusal that is not stored.
   */
  toKept(handle: () => HandlerResult): StoredResponse | undefined
  /** Returns the stored result, or throws the stored refusal. */
  replay(response: StoredResponse): HandlerResult
}

/** The call of a batch. */
export type BatchCall<Body = unknown> = Call<Body> & {
  /** Validates an element against the route's `item` schema and the limits of a body. Throws a Fault. */
  checkItem: (value: unknown) => Record<string, unknown>
}

/** The further argument of the handler of a long response. */
export type StreamState = {
  /** Returns the refusal for an error. Logs the error if it is a fault of kith or of the database. */
  explain: (error: unknown) => Refusal
  /** Whether the service is shutting down, so that the stream should end. */
  draining: () => boolean
}

/** The call of a row whose request may wait for events. Its `body` is the query. */
export type FollowingCall<Query = unknown> = Call<Query> & StreamState & { following: Following }

/** The call of a row whose body is JSON lines or a CSV table. Its `body` is the query. */
export type StreamingCall<Query = unknown> = Call<Query> &
  StreamState & {
    /** The body's bytes as they arrive. Throws if the connection closes, or if no data arrives in time. */
    chunks: AsyncIterable<Buffer>
    /** Whether the body is CSV. */
    isCsv: boolean
    /** Parses a line and validates it against the route's `line` schema and the limits of a body. Throws a Fault. */
    checkLine: (line: Buffer) => Record<string, unknown> | Promise<Record<string, unknown>>
  }

/** A request that may wait for events, for longer than its deadline. */
export type Following = {
  /** The header Last-Event-ID, which a client of server-sent events sends when it reconnects. */
  lastEventId: string | undefined
  /**
   * Ends the deadline, and removes the request from those under way, so that it does not block others. The handler
   * limits the number of such requests itself.
   */
  begin(): void
  /** Verifies the request's token again. Throws a Fault of 401 if it is no longer valid. */
  authenticate(): Caller | Promise<Caller>
  /** Closes the connection of a client that does not read. */
  disconnect(): void
}
