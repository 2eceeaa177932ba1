import { KithTimeoutError } from './errors.ts'

/** Ends a request early: when the signal of the caller aborts, or when a wait takes too long. */
export type Watchdog = { signal: AbortSignal; within<T>(work: Promise<T>, timeoutMs: number): Promise<T>; end(): void }

/** Aborts with the caller's signal, and if a wait exceeds its timeout. The time between two waits does not count. */
export function createWatchdog(signal: AbortSignal | undefined): Watchdog {
  const controller = new AbortController()
  const stop = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  return {
    signal: controller.signal,
    async within(work, timeoutMs) {
      const timer = setTimeout(() => controller.abort(new KithTimeoutError(timeoutMs)), timeoutMs)
      return untilAborted(work, controller.signal).finally(() => clearTimeout(timer))
    },
    end() {
      signal?.removeEventListener('abort', stop)
      controller.abort()
    },
  }
}

/** Returns the result of `work`. Rejects with the reason of the signal as soon as it aborts. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
