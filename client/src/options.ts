import type { ClientCredentials } from './credentials.ts'
import type { EntityDryRun } from './wire.ts'

/** The options of a client: the service, the credentials, timeouts and retries. */
export type ClientOptions = (
  | { token: string; getToken?: never; clientCredentials?: never; session?: never }
  /** Called before every attempt. It should cache the token while it is valid. */
  | { token?: never; getToken: () => string | Promise<string>; clientCredentials?: never; session?: never }
  /**
   * Tokens are fetched from POST /oauth/token. They are renewed before they expire and when the service refuses one.
   */
  | { token?: never; getToken?: never; clientCredentials: ClientCredentials; session?: never }
  /**
   * For a page of the service itself in a browser: the cookie of a console session authenticates the requests. An
   * import collects its lines and sends them at once, because browsers cannot stream a request over HTTP/1.1.
   */
  | { token?: never; getToken?: never; clientCredentials?: never; session: true }
) & {
  /** The URL of the service: `https://kith.example.org`. It includes the path if the service is below one. */
  url: string
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch
  /** The timeout of an attempt in milliseconds, 12,000 by default. The deadline of the service itself is 10,000. */
  timeoutMs?: number
  /** The maximum number of retries, 2 by default. The README says which requests are retried. */
  retries?: number
  /**
   * Lets reads show the writes of this client, even if a standby answers them: each read is sent with the highest
   * change number of its writes as {@link CallOptions.ifSequence}. After the service was restored from a backup, create
   * a new client.
   */
  readYourWrites?: boolean
  /**
   * Joins the `get` calls of one event-loop turn, for one kind of entity and without options, into one request. Each
   * call still has its own promise and error.
   */
  loader?: boolean
  /** Called after each attempt of a request. Paths contain identifiers and queries, which may be personal data. */
  logger?: (attempt: Attempt) => void
  /** Replaces `Math.random`. Its result, from 0 to 1, is the fraction of the maximum pause before a retry. */
  random?: () => number
  /** Replaces the timer for pauses between attempts. Must reject when the signal aborts. */
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<void>
}

/** An attempt to send a request, for a log. */
export type Attempt = {
  method: string
  /** The path with its query, below the URL of the service. */
  path: string
  /** Counts from 1. */
  attempt: number
  durationMs: number
  /** The status of the response; null without a response. */
  status: number | null
  requestId: string | null
  error: Error | null
  /** The pause before the next attempt. Null after the last attempt. */
  pauseMs: number | null
}

/** The data of a call, or with `withResponse()` also the response. Its body has been read. */
export type Call<T> = Promise<T> & {
  /**
   * ```ts
   * const { data, response } = await client.people.get('ada').withResponse()
   * console.log(data.first_name, response.status, response.headers.has('x-request-id')) // Ada 200 true
   * ```
   */
  withResponse(): Promise<{ data: T; response: Response }>
}

/** The options of every call. */
export type CallOptions = {
  /** The timeout of an attempt of this call in milliseconds. It replaces the client's. */
  timeoutMs?: number
  /** The maximum number of retries of this call. It replaces the client's. */
  retries?: number
  /** Aborts the call, which rejects with the signal's reason. The service may still carry out the request. */
  signal?: AbortSignal
  /** Sent as `X-Request-Id`: 1 to 64 letters, digits, `_` and `-`. The service writes it to its log and change log. */
  requestId?: string
  /**
   * The number of a change that a read must show, such as `client.sequence()` of a client that has written. A standby
   * waits for the change up to a second. It refuses the read with 503 if the change does not arrive, and the client
   * retries.
   */
  ifSequence?: number
}

/** The options of a write. */
export type WriteOptions = CallOptions & {
  /** The version that the entity must have, or `*` for any version. Otherwise the write is refused with 412. */
  ifMatch?: number | '*'
  /** `strict` refuses relationship targets that do not exist. Without it, they are created as placeholders. */
  references?: 'strict'
  /**
   * `recreate` lets a write assign an identifier, an email or a phone number of an erased person again. Without it,
   * such a write is refused with the reason `erased`.
   */
  erased?: 'recreate'
  /**
   * The Idempotency-Key, 1 to 255 characters. The client generates one for every POST that writes and repeats it in
   * retries. The service carries out a request with the same key only once within 24 hours, so a `replace` or `patch`
   * with a key is also retried.
   */
  idempotencyKey?: string
  /**
   * Returns what the write would do, and writes nothing. The service refuses a dry run like the write itself. It takes
   * no `idempotencyKey`.
   */
  dryRun?: boolean
}

/** The result of a write: `Result`, or what the write would do if `dryRun` is set. */
export type Written<O extends { dryRun?: boolean }, Result, Would = EntityDryRun> = O extends { dryRun: true }
  ? Would
  : O extends { dryRun: boolean }
    ? Result | Would
    : Result

/** The options of a replace or a patch. */
export type UpdateOptions = WriteOptions & {
  /** Returns the entity after the write instead of `true`. */
  representation?: boolean
}

/**
 * The result of a replace or a patch: `true`, or the entity if `representation` is set, or what would happen if `dryRun` is set.
 */
export type Updated<O extends UpdateOptions, Entity> = Written<
  O,
  O extends { representation: true } ? Entity : O extends { representation: boolean } ? Entity | true : true
>
