import { KithConnectionError, KithError, KithTimeoutError } from './errors.ts'

/** How an attempt can fail. */
export type Failure = KithError | KithConnectionError | KithTimeoutError

/**
 * What a failed attempt may have done: `none` is known to have done nothing, `unknown` may have been done or not, and
 * `final` is an answer that another attempt would get again.
 */
export type Work = 'none' | 'unknown' | 'final'

const firstPauseMs = 200
const longestPauseMs = 5_000
/** A service that asks for a longer pause than this is not waited for. */
const longestRetryAfterMs = 30_000

// The request never left: nobody listens, or there is no such host.
const unsent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

/**
 * What the attempt that failed so may have done. 503 is `unknown`: the service gives it also when the database went
 * away while it was committing. 504 in the service's own envelope took its 10 seconds, and would take them again.
 */
export function workOf(failure: Failure): Work {
  if (failure instanceof KithError) {
    if (failure.status === 429 || isStillRunning(failure)) return 'none'
    return failure.status === 503 ? 'unknown' : 'final'
  }
  if (!(failure instanceof KithConnectionError)) return 'unknown'
  if (failure.status === 429 || neverSent(failure.cause)) return 'none'
  return failure.status === null || [502, 503, 504].includes(failure.status) ? 'unknown' : 'final'
}

/** An attempt before this one has the Idempotency-Key, and no answer yet. A name that is taken has a word of its own. */
const isStillRunning = ({ status, word }: KithError): boolean => status === 409 && word === 'invalid_parameter'

/** Node's fetch hides the code of the system in the causes of its error, one for each address that was tried. */
function neverSent(cause: unknown): boolean {
  if (typeof cause !== 'object' || cause === null) return false
  const { code, errors, cause: deeper } = cause as { code?: unknown; errors?: unknown; cause?: unknown }
  if (Array.isArray(errors) && errors.length > 0) return errors.every(neverSent)
  if (typeof code === 'string') return unsent.has(code)
  return neverSent(deeper)
}

/**
 * How long to wait before the next attempt, in milliseconds; null where there is to be none. Full jitter: anything from
 * nothing to a pause that doubles each time, after what `Retry-After` asks for.
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
  const work = workOf(failure)
  if (attempt > retries || work === 'final' || (work === 'unknown' && !repeatable)) return null
  const askedMs = failure instanceof KithTimeoutError ? 0 : (failure.retryAfterSeconds ?? 0) * 1_000
  if (askedMs > longestRetryAfterMs) return null
  return askedMs + random() * Math.min(longestPauseMs, firstPauseMs * 2 ** (attempt - 1))
}
