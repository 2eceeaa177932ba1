import { KithConnectionError, KithError, KithImportError, KithTimeoutError } from '../client/index.ts'

// A service that restarts, or one that a balancer takes over from, is back within half a minute.
const mostAttempts = 8
const firstPauseMs = 200
const longestPauseMs = 10_000

/** Counts how often a stream has failed in a row. */
export class Attempts {
  #failed = 0

  /** Something was done: the next failure is the first one again. */
  succeed(): void {
    this.#failed = 0
  }

  /**
   * How long to wait before the stream is asked for again, in milliseconds; null where that is no use. `reached` says that
   * the service has been spoken to: one that never was is more likely misspelt than away.
   */
  pauseAfter(error: unknown, reached: boolean): number | null {
    this.#failed++
    if (this.#failed >= mostAttempts || !isPassing(error, reached)) return null
    const asked = error instanceof KithError || error instanceof KithConnectionError ? error.retryAfterSeconds : null
    return Math.max((asked ?? 0) * 1_000, Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failed - 1)))
  }
}

function isPassing(error: unknown, reached: boolean): boolean {
  if (error instanceof KithImportError || error instanceof KithTimeoutError) return true
  if (error instanceof KithError) return [429, 500, 503, 504].includes(error.status)
  if (!(error instanceof KithConnectionError)) return false
  if (error.status !== null) return [429, 502, 503, 504].includes(error.status)
  return reached || codesOf(error).some(code => ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code))
}

function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const { code } = error as NodeJS.ErrnoException
  return [...(code === undefined ? [] : [code]), ...codesOf(error.cause)]
}
