import type { ClientCredentials } from './credentials.ts'

/** Who answers, who asks, and how patiently. */
export type ClientOptions = (
  | { token: string; getToken?: never; clientCredentials?: never }
  /** Asked before every attempt: it keeps a token as long as the token lasts. */
  | { token?: never; getToken: () => string | Promise<string>; clientCredentials?: never }
  /** Fetches tokens from POST /oauth/token and renews them, before they expire and when the service refuses one. */
  | { token?: never; getToken?: never; clientCredentials: ClientCredentials }
) & {
  /** Where the service is: `https://kith.example.org`. What stands below a path of its own has the path here too. */
  url: string
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch
  /** How long one attempt waits for its answer; 12,000 by default: the service itself gives up after 10,000. */
  timeoutMs?: number
  /** How many times a request may be sent again; 2 by default. What is safe to send again, the README says. */
  retries?: number
  /** From 0 to 1, instead of `Math.random`: the part of the longest pause that is waited before a retry. */
  random?: () => number
  /** Instead of a timer, for the pauses between attempts. Rejects when the signal aborts. */
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<void>
}

/** What any call may be told. */
export type CallOptions = {
  /** Ends the call: it rejects with the signal's reason. What the service has begun, it may still do. */
  signal?: AbortSignal
  /** Sent as `X-Request-Id`: 1 to 64 letters, digits, `_` and `-`, which the service's log and change log keep. */
  requestId?: string
}

/** What a call that changes something may be told. */
export type WriteOptions = CallOptions & {
  /** The version that must stand, or `*` for any: else the write is refused with 412. */
  ifMatch?: number | '*'
  /** `strict` refuses relationship targets that do not exist; without it they are created as placeholders. */
  references?: 'strict'
  /** 1 to 255 characters; the client makes one for every POST that writes, and keeps it when it sends again.
   * Under one key the service does a request once within 24 hours, so a `replace` or `patch` with one is sent again, too. */
  idempotencyKey?: string
}

/** What a replace or a patch may be told. */
export type UpdateOptions = WriteOptions & {
  /** Answers the entity as it stands after the write, instead of `true`. */
  representation?: boolean
}

/** What a replace or a patch answers: `true`, or the entity where `representation` asks for it. */
export type Updated<O extends UpdateOptions, Entity> = O extends { representation: true }
  ? Entity
  : O extends { representation: boolean }
    ? Entity | true
    : true
