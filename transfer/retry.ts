import { isTemporary, KithConnectionError, KithError } from '../client/index.ts'

/** The request to stop an import or an export: after the work in progress, or at once when the signal aborts. */
export type Stop = { readonly isRequested: boolean; whenRequested: Promise<void>; signal: AbortSignal }

// A service that restarts, or that a load balancer replaces, is back within half a minute.
const maxAttempts = 8
/** An address that has never answered is probably wrong. */
const maxFirstAttempts = 3
const minDelayMs = 200
const maxDelayMs = 10_000

/** Decides whether and when an import or an export continues after an error. It counts consecutive failures. */
export class Retries {
  #failed = 0
  #done = 0
  #hasAnswered = false

  /**
   * Waits before the next attempt, or throws the error after the last one. `done` is the number of lines so far:
   * progress resets the count of failures. `announce` is called with the pause in milliseconds.
   */
  async wait(error: unknown, done: number, stop: Stop, announce: (pauseMs: number) => void): Promise<void> {
    if (done > this.#done) [this.#failed, this.#done] = [0, done]
    this.#hasAnswered ||= done > 0 || (isResponse(error) && error.status !== null)
    this.#failed++
    const isUnreachable = !this.#hasAnswered && error instanceof KithConnectionError && !error.wasSent
    if (isUnreachable || !isTemporary(error) || this.#failed >= (this.#hasAnswered ? maxAttempts : maxFirstAttempts))
      throw error
    const askedSeconds = isResponse(error) ? (error.retryAfterSeconds ?? 0) : 0
    const pauseMs = Math.max(askedSeconds * 1_000, Math.min(maxDelayMs, minDelayMs * 2 ** (this.#failed - 1)))
    announce(pauseMs)
    const timer = startTimer(pauseMs)
    await Promise.race([timer.ended, stop.whenRequested])
    timer.cancel()
  }
}

const isResponse = (error: unknown): error is KithError | KithConnectionError =>
  error instanceof KithError || error instanceof KithConnectionError

/** A timer that can be cancelled, so that it does not keep a process running. */
export function startTimer(milliseconds: number): { ended: Promise<void>; cancel(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  return { ended: promise, cancel: () => clearTimeout(timer) }
}
