import type { Signal } from '../process/signal.ts'
import { createRefusal, Fault, retryInASecond } from '../values/errors.ts'

// Work runs again after three kinds of errors, until the request's deadline:
// - A conflict with another client of the database, or a row that has moved: the whole transaction, ten times at most,
//   with a growing pause (retryConflicts).
// - Another error of writes that share a transaction: one by one, without a pause (entities/write/run.ts).
// - The deadline of one request of a batch, which rolls the batch back: the other requests, at once (coalesce.ts).
// A write does not run again if the database became unavailable, because a COMMIT that was sent may have succeeded.

/** The number of attempts of a request that keeps conflicting with concurrent writes. */
const maxAttempts = 10

const immediateAttempts = 3
const pauseMs = 4

/**
 * Runs `work`, and retries it while it fails with a conflict. `work` receives the error of the previous attempt. After
 * the last attempt, it throws {@link conflictFault}. It throws any other error of `work` at once.
 */
export async function retryConflicts<T>(
  work: (previousError?: unknown) => Promise<T>,
  isConflict: (error: unknown) => boolean,
  signal?: Signal,
): Promise<T> {
  let previousError: unknown
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(previousError)
    } catch (error) {
      if (!isConflict(error)) throw error
      if (signal?.aborted || attempt >= maxAttempts) throw conflictFault(error)
      previousError = error
    }
    await pauseAfter(attempt, signal)
  }
}

/**
 * Pauses before the next attempt: first not at all, then 4 ms, doubled each time, 508 ms in all. Returns early when the
 * signal aborts.
 */
async function pauseAfter(attempt: number, signal?: Signal): Promise<void> {
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

/** The 503 for a request whose attempts all conflicted. The condition is temporary, so it is not logged as a fault. */
function conflictFault(cause: unknown): Fault {
  const refusal = createRefusal(
    'operation_failed',
    'The request kept conflicting with concurrent writes. Retry.',
    retryInASecond,
  )
  return new Fault(refusal, { cause })
}
