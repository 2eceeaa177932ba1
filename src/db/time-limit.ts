import { Cancellation, type Signal } from '../process/signal.ts'

/**
 * Runs `work` with a signal that aborts with `signal`, or after `limitMs` with the reason that `late` returns. After
 * the limit, throws that reason instead of an error of the work.
 */
export async function withTimeLimit<T>(
  limitMs: number,
  signal: Signal | undefined,
  work: (limited: Signal) => Promise<T>,
  late: () => unknown,
): Promise<T> {
  signal?.throwIfAborted()
  const limited = new Cancellation()
  const abort = () => limited.abort(signal!.reason)
  const timer = setTimeout(() => limited.abort(late()), limitMs)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await work(limited)
  } catch (error) {
    limited.throwIfAborted()
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
