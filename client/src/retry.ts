import { type Failure, isFailure, isKithError, KithConnectionError, KithError, KithTimeoutError } from './errors.ts'
import { KithImportError } from './import.ts'

/**
 * The outcome of a failed attempt. `notDone`: the request had no effect. `unknown`: it may have been carried out.
 * `final`: a retry would get the same response.
 */
export type Outcome = 'notDone' | 'unknown' | 'final'

const firstPauseMs = 200
const maxPauseMs = 5_000
/** The client does not retry if `Retry-After` is longer than this. */
const maxRetryAfterMs = 30_000

/**
 * Classifies a failed attempt. A 503 is `unknown`, because the service also returns it if the database connection was
 * lost during a commit. A 504 in kith's own format is `final`, because a retry would take 10 seconds again.
 */
export function outcomeOf(failure: Failure): Outcome {
  if (failure instanceof KithError) {
    if (failure.status === 429 || isStillRunning(failure)) return 'notDone'
    return failure.status === 503 ? 'unknown' : 'final'
  }
  if (!(failure instanceof KithConnectionError)) return 'unknown'
  if (failure.status === 429 || !failure.wasSent) return 'notDone'
  return failure.status === null || [502, 503, 504].includes(failure.status) ? 'unknown' : 'final'
}

/** An earlier attempt with the same Idempotency-Key is still running. The 409 of a taken name has another code. */
const isStillRunning = ({ status, code }: KithError): boolean => status === 409 && code === 'invalid_parameter'

/**
 * The pause before the next attempt, in milliseconds. Null if the client must not retry. The pause is `Retry-After`
 * plus full jitter: a random time from zero to a bound that doubles with each attempt, up to 5 seconds.
 */
export function pauseBefore(
  failure: Failure,
  {
    attempt,
    retries,
    repeatable,
    random,
  }: { attempt: number; retries: number; repeatable: boolean; random: () => number },
): number | null {
  const outcome = outcomeOf(failure)
  if (attempt > retries || outcome === 'final' || (outcome === 'unknown' && !repeatable)) return null
  const retryAfterMs = retryAfterMsOf(failure)
  return retryAfterMs > maxRetryAfterMs ? null : retryAfterMs + jitterMs(attempt, random)
}

const retryAfterMsOf = (failure: Failure): number =>
  failure instanceof KithTimeoutError ? 0 : (failure.retryAfterSeconds ?? 0) * 1_000

const jitterMs = (attempt: number, random: () => number): number =>
  random() * Math.min(maxPauseMs, firstPauseMs * 2 ** (attempt - 1))

/**
 * Whether the same call can succeed later: after a lost connection, a timeout, a 429, or a failure of the service or of
 * a proxy in front of it (5xx). A write may have been carried out nevertheless.
 *
 * ```ts
 * import { isTemporary } from '@kith/client'
 *
 * const error = await client.people.get('nobody').catch(error => error)
 * console.log(isTemporary(error)) // false
 * ```
 */
export function isTemporary(error: unknown): boolean {
  if (!isFailure(error)) return false
  // An import with too many refused lines would end again. Every other end of an import has a temporary cause.
  if (error instanceof KithImportError) return error.code !== 'invalid_parameter'
  if (error instanceof KithTimeoutError || error.status === null) return true
  // A PATCH of a missing person is `not_found` with status 500.
  return error.status === 429 || (error.status >= 500 && !isKithError(error, 'not_found'))
}

/** The maximum pause before a follower reconnects. */
const maxReconnectPauseMs = 3_600_000

/**
 * The pause before a follower reconnects, in milliseconds, after `attempt` consecutive failures. Null if the service
 * refuses the request, because it would refuse it again.
 */
export function pauseBeforeReconnect(failure: Failure, attempt: number, random: () => number): number | null {
  if (!isTemporary(failure)) return null
  return Math.min(maxReconnectPauseMs, retryAfterMsOf(failure)) + jitterMs(attempt, random)
}
