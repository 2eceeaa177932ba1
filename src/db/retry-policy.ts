import { Fault, refuse } from '../errors.ts'
import type { Signal } from '../signal.ts'

/** The number of attempts of a request that keeps conflicting with concurrent writes. */
export const maxAttempts = 10

const immediateAttempts = 3
const pauseMs = 4

/** Waits before the next attempt: not at first, then 4 ms, doubled each time, 508 ms in all. Returns early when the signal aborts. */
export async function pauseAfter(attempt: number, signal?: Signal): Promise<void> {
  if (attempt < immediateAttempts || signal?.aborted) return
  await new Promise<void>(resolve => {
    const proceed = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', proceed)
      resolve()
    }
    const timer = setTimeout(proceed, pauseMs * 2 ** (attempt - immediateAttempts))
    // The next attempt fails with the signal's reason.
    signal?.addEventListener('abort', proceed)
  })
}

/** The 503 for a request whose attempts all conflicted. The condition passes, so it is not logged as a fault. */
export function conflictFault(cause: unknown): Fault {
  const refusal = refuse('operation_failed', 'The request kept conflicting with concurrent writes. Retry.', {
    status: 503,
    headers: { 'Retry-After': '1' },
  })
  return new Fault(refusal, { cause })
}
