import { Fault, refuse } from '../errors.ts'
import type { Signal } from '../signal.ts'

/** What others keep getting ahead of is tried this often before it is refused. */
export const maxAttempts = 10

const promptAttempts = 3
const pauseMs = 4

/** Lets others finish before the next attempt: nothing at first, then twice as long each time, 508 ms in all. */
export async function pauseAfter(attempt: number, signal?: Signal): Promise<void> {
  if (attempt < promptAttempts || signal?.aborted) return
  await new Promise<void>(resolve => {
    const goOn = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', goOn)
      resolve()
    }
    const timer = setTimeout(goOn, pauseMs * 2 ** (attempt - promptAttempts))
    // The next attempt notices that the time is over.
    signal?.addEventListener('abort', goOn)
  })
}

/** Answers that others were ahead each time: it passes by itself, so it is no fault. */
export function conflictFault(cause: unknown): Fault {
  const refusal = refuse('operation_failed', 'Others kept changing what this request rests on.', {
    status: 503,
    headers: { 'Retry-After': '1' },
  })
  return new Fault(refusal, { cause })
}
