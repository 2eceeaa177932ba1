import { createRefusal, Fault } from '../../errors.ts'
import { Cancellation, type Signal } from '../../signal.ts'

/**
 * The time of a request, including the wait for a database connection. `end` must be called when the request is over.
 */
export type Deadline = {
  readonly signal: Signal
  end(): void
  /** Starts the time anew, with another limit. */
  restart(limitMs: number): void
  /** Runs work under the request's deadline or, if that has ended, under a deadline of its own. */
  within<T>(work: () => Promise<T>): Promise<T>
  cancel(reason: Error): void
}

/**
 * Starts the deadline of a request. When it passes, the signal aborts with a Fault of 504, and then `onExpired` is
 * called.
 */
export function startDeadline(limitMs: number, onExpired: (fault: Fault) => void = () => {}): Deadline {
  const signal = new Cancellation()
  let requestMs = limitMs
  const expire = () => {
    const fault = buildTimeoutFault(requestMs)
    signal.abort(fault)
    onExpired(fault)
  }
  let timer: NodeJS.Timeout | undefined = setTimeout(expire, requestMs)
  const end = () => {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    signal,
    end,
    restart: limitMs => {
      clearTimeout(timer)
      requestMs = limitMs
      timer = setTimeout(expire, requestMs)
    },
    within: async work => {
      if (timer) return work()
      timer = setTimeout(expire, requestMs)
      return work().finally(end)
    },
    cancel: reason => signal.abort(reason),
  }
}

function buildTimeoutFault(requestMs: number): Fault {
  return new Fault(
    createRefusal(
      'operation_failed',
      `The request took longer than ${Math.round(requestMs) / 1000} seconds and was cancelled.`,
      {
        status: 504,
      },
    ),
  )
}
