import type { Detail, ErrorWord } from './wire.ts'

/** What the service says of a request that it refused. */
export type Refusal = {
  word: ErrorWord
  status: number
  message: string
  details: Detail[]
  request_id: string | null
  errorstack: { reason: string; request_id: string } | null
  /** What `Retry-After` asked for, in seconds. */
  retryAfterSeconds: number | null
  outcome?: 'unknown' | null
}

/**
 * The service refused the request, or failed at it. `word` tells why: `not_found` is a missing entity whatever the
 * status (a PATCH of a person by external identifier has 500 there), unless `missing` says that it is something else. The
 * message quotes the first of the `details`.
 */
export class KithError extends Error {
  override readonly name: string = 'KithError'
  readonly word: ErrorWord
  readonly status: number
  /** What is wrong with which value; `path` is a JSON Pointer into the body. */
  readonly details: Detail[]
  /** The service's own sentence, without the details. */
  readonly sentence: string
  /**
   * What a `not_found` did not find: `address` where the service has no such endpoint (is the url right?), `stack` where it
   * has no such stack, and `entity` else. Null of every other word.
   */
  readonly missing: 'address' | 'stack' | 'entity' | null
  /** What to ask the operator of the service about. */
  readonly request_id: string | null
  /** Null below 500. */
  readonly errorstack: Refusal['errorstack']
  readonly retryAfterSeconds: number | null
  /** `unknown` where the service cannot say whether the write was done. */
  readonly outcome: 'unknown' | null
  /** How many times the request was sent. */
  attempts = 1
  /**
   * An earlier attempt of this very call ended without an answer, so it may have been done: then 412 or `duplicate_entry`
   * may speak of this call's own work.
   */
  answerLost = false

  constructor(refusal: Refusal) {
    super(messageOf(refusal))
    this.sentence = refusal.message
    this.missing = missingIn(refusal)
    this.word = refusal.word
    this.status = refusal.status
    this.details = refusal.details
    this.request_id = refusal.request_id
    this.errorstack = refusal.errorstack
    this.retryAfterSeconds = refusal.retryAfterSeconds
    this.outcome = refusal.outcome ?? null
  }
}

function messageOf(refusal: Refusal): string {
  const { message, details } = refusal
  const [first, ...others] = details
  if (!first) return message
  if (missingIn(refusal) === 'address') return `${message} Is the url of the client right?`
  const place = first.path === '' ? '' : `at ${first.path}: `
  const more = others.length > 0 ? `; and ${others.length} more` : ''
  return `${message.replace(/\.$/, '')} (${place}${first.message}${more})`
}

/** An address is told by a detail of the whole request, a stack by one of the path's `stack_key`. */
function missingIn({ word, details }: Refusal): KithError['missing'] {
  if (word !== 'not_found') return null
  const path = details[0]?.path
  if (path === '') return 'address'
  return path === '/stack_key' ? 'stack' : 'entity'
}

/** No answer of the service: it could not be reached, the connection broke, or something between answered instead. */
export class KithConnectionError extends Error {
  override readonly name: string = 'KithConnectionError'
  /** The status of what answered instead of the service; null where nothing did. */
  readonly status: number | null
  readonly retryAfterSeconds: number | null
  attempts = 1

  constructor(message: string, given: { status?: number; retryAfterSeconds?: number | null; cause?: unknown }) {
    super(message, given.cause === undefined ? undefined : { cause: given.cause })
    this.status = given.status ?? null
    this.retryAfterSeconds = given.retryAfterSeconds ?? null
  }
}

/** No answer within `timeoutMs`. A write may have been done. */
export class KithTimeoutError extends Error {
  override readonly name: string = 'KithTimeoutError'
  readonly timeoutMs: number
  attempts = 1

  constructor(timeoutMs: number) {
    super(`There was no answer within ${timeoutMs} ms.`)
    this.timeoutMs = timeoutMs
  }
}

/**
 * Whether an error is the service's, and of this word if one is given.
 *
 * ```ts
 * import { isKithError } from '@kith/client'
 *
 * try {
 *   await client.people.patch('nobody', { first_name: 'No' })
 * } catch (error) {
 *   if (!isKithError(error, 'not_found')) throw error
 *   console.log(error.word) // not_found
 * }
 * ```
 */
export function isKithError<W extends ErrorWord = ErrorWord>(
  error: unknown,
  word?: W,
): error is KithError & { word: W } {
  return error instanceof KithError && (word === undefined || error.word === word)
}
