import type { Detail, ErrorCode } from './wire.ts'

/** The error response of the service. */
export type Refusal = {
  code: ErrorCode
  status: number
  message: string
  details: Detail[]
  request_id: string | null
  errorstack: { reason: string; request_id: string } | null
  /** The value of `Retry-After`, in seconds. */
  retryAfterSeconds: number | null
  outcome?: 'unknown' | 'done' | null
  reason?: 'erased' | null
}

/**
 * The service refused the request or failed. Distinguish errors by their `code`, not by their status: a PATCH of a
 * missing person by external identifier is `not_found` with status 500. The message includes the first of the
 * `details`.
 */
export class KithError extends Error {
  override readonly name: string = 'KithError'
  /** The error code, the `error` field of the response. */
  readonly code: ErrorCode
  readonly status: number
  /** The invalid values and their errors. `path` is a JSON Pointer into the body. */
  readonly details: Detail[]
  /** The message of the service, without the details. */
  readonly sentence: string
  /**
   * The resource that a `not_found` refers to: `address` if the service has no such endpoint (check the url), `stack`
   * if it has no such stack, else `entity`. Null for every other code.
   */
  readonly missing: 'address' | 'stack' | 'entity' | null
  /** The request id, under which the operator of the service finds the request in the log. */
  readonly request_id: string | null
  /** The reason of a failure. Null for statuses below 500. */
  readonly errorstack: Refusal['errorstack']
  /** The value of `Retry-After`, in seconds. */
  readonly retryAfterSeconds: number | null
  /** `unknown` if the write may have been done. `done` if it was done and only its response is missing. */
  readonly outcome: 'unknown' | 'done' | null
  /** `erased` if a value belonged to a person who was erased. */
  readonly reason: 'erased' | null
  /** How many times the request was sent. */
  attempts = 1
  /**
   * Whether the response to an earlier attempt of this call was lost, so that the attempt may have been carried out. A
   * 412 or `duplicate_entry` may then result from this call's own write.
   */
  answerLost = false

  constructor(refusal: Refusal) {
    super(messageOf(refusal))
    this.sentence = refusal.message
    this.missing = missingIn(refusal)
    this.code = refusal.code
    this.status = refusal.status
    this.details = refusal.details
    this.request_id = refusal.request_id
    this.errorstack = refusal.errorstack
    this.retryAfterSeconds = refusal.retryAfterSeconds
    this.outcome = refusal.outcome ?? null
    this.reason = refusal.reason ?? null
  }
}

function messageOf(refusal: Refusal): string {
  const { message, details } = refusal
  const [first, ...others] = details
  if (!first) return message
  if (missingIn(refusal) === 'address') return `${message} Check the url of the client.`
  const location = first.path === '' ? '' : `at ${first.path}: `
  const more = others.length > 0 ? `; and ${others.length} more` : ''
  return `${message.replace(/\.$/, '')} (${location}${first.message}${more})`
}

/** The first detail has an empty path for an unknown endpoint, and `/stack_key` for an unknown stack. */
function missingIn({ code, details }: Refusal): KithError['missing'] {
  if (code !== 'not_found') return null
  const path = details[0]?.path
  if (path === '') return 'address'
  return path === '/stack_key' ? 'stack' : 'entity'
}

/** The service could not be reached, the connection broke, or something else, such as a proxy, responded. */
export class KithConnectionError extends Error {
  override readonly name: string = 'KithConnectionError'
  /** The status of a response that is not from kith. Null without a response. */
  readonly status: number | null
  /** The value of `Retry-After` of that response, in seconds. */
  readonly retryAfterSeconds: number | null
  /**
   * False if the request certainly did not reach the service: the port is closed or the host is unknown. Browsers do
   * not report this.
   */
  readonly wasSent: boolean
  /** How many times the request was sent. */
  attempts = 1

  constructor(message: string, options: { status?: number; retryAfterSeconds?: number | null; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.status = options.status ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
    this.wasSent = !wasNeverSent(options.cause)
  }
}

// The error codes of a request that was never sent: the port is closed or the host is unknown.
const unsentErrorCodes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

/** Node's fetch reports the system's error code in the causes of its error, one for each address that it tried. */
function wasNeverSent(cause: unknown): boolean {
  if (typeof cause !== 'object' || cause === null) return false
  const { code, errors, cause: nestedCause } = cause as { code?: unknown; errors?: unknown; cause?: unknown }
  if (Array.isArray(errors) && errors.length > 0) return errors.every(wasNeverSent)
  if (typeof code === 'string') return unsentErrorCodes.has(code)
  return wasNeverSent(nestedCause)
}

/** No response came within `timeoutMs`. A write may have been carried out. */
export class KithTimeoutError extends Error {
  override readonly name: string = 'KithTimeoutError'
  readonly timeoutMs: number
  /** How many times the request was sent. */
  attempts = 1

  constructor(timeoutMs: number) {
    super(`There was no response within ${timeoutMs} ms.`)
    this.timeoutMs = timeoutMs
  }
}

/** The errors of a failed attempt. */
export type Failure = KithError | KithConnectionError | KithTimeoutError

/** Whether an error is one of the errors of a failed attempt. */
export function isFailure(error: unknown): error is Failure {
  return error instanceof KithError || error instanceof KithConnectionError || error instanceof KithTimeoutError
}

/**
 * Whether an error is a {@link KithError}, and has this code if one is given.
 *
 * ```ts
 * import { isKithError } from '@kith/client'
 *
 * try {
 *   await client.people.patch('nobody', { first_name: 'No' })
 * } catch (error) {
 *   if (!isKithError(error, 'not_found')) throw error
 *   console.log(error.code) // not_found
 * }
 * ```
 */
export function isKithError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: C,
): error is KithError & { code: C } {
  return error instanceof KithError && (code === undefined || error.code === code)
}
