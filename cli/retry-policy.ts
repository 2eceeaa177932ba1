import { KithConnectionError, KithError, KithImportError, KithTimeoutError } from '../client/index.ts'

// A service that restarts, or that a load balancer replaces, is back within half a minute.
const maxAttempts = 8
const minDelayMs = 200
const maxDelayMs = 10_000

/** Decides whether and when to retry a stream. It counts the failures in a row. */
export class RetryPolicy {
  #failed = 0

  /** Resets the count after progress. */
  reset(): void {
    this.#failed = 0
  }

  /**
   * Returns the delay before the next retry in milliseconds, or null if the command gives up. `hasConnected` says that the
   * service has answered before. An address that never answered is probably wrong, so it is not retried.
   */
  delayAfter(error: unknown, hasConnected: boolean): number | null {
    this.#failed++
    if (this.#failed >= maxAttempts || !isTransient(error, hasConnected)) return null
    const serverDelaySeconds =
      error instanceof KithError || error instanceof KithConnectionError ? error.retryAfterSeconds : null
    return Math.max((serverDelaySeconds ?? 0) * 1_000, Math.min(maxDelayMs, minDelayMs * 2 ** (this.#failed - 1)))
  }
}

function isTransient(error: unknown, hasConnected: boolean): boolean {
  if (error instanceof KithImportError || error instanceof KithTimeoutError) return true
  if (error instanceof KithError) return [429, 500, 503, 504].includes(error.status)
  if (!(error instanceof KithConnectionError)) return false
  if (error.status !== null) return [429, 502, 503, 504].includes(error.status)
  return hasConnected || codesOf(error).some(code => ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code))
}

function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const { code } = error as NodeJS.ErrnoException
  return [...(code === undefined ? [] : [code]), ...codesOf(error.cause)]
}
