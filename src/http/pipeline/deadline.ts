import { Fault, refuse } from '../../errors.ts'
import { Cancellation, type Signal } from '../../signal.ts'

/** A request's time, waiting for a connection included. `end` must be called when the request is over. */
export type Deadline = {
  readonly signal: Signal
  end(): void
  /** Gives work its own time, once that of the request has ended; until then it has the request's. */
  within<T>(work: () => Promise<T>): Promise<T>
  cancel(reason: Error): void
}

/** Starts a request's time. When it has passed, the signal aborts with the 504 that is answered; then `passed` is called. */
export function startDeadline(requestMs: number, passed: (fault: Fault) => void = () => {}): Deadline {
  const signal = new Cancellation()
  const expire = () => {
    const fault = timedOut(requestMs)
    signal.abort(fault)
    passed(fault)
  }
  let timer: NodeJS.Timeout | undefined = setTimeout(expire, requestMs)
  const end = () => {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    signal,
    end,
    within: async work => {
      if (timer) return work()
      timer = setTimeout(expire, requestMs)
      return work().finally(end)
    },
    cancel: reason => signal.abort(reason),
  }
}

function timedOut(requestMs: number): Fault {
  return new Fault(
    refuse(
      'operation_failed',
      `The request took longer than ${Math.round(requestMs) / 1000} seconds and was cancelled.`,
      {
        status: 504,
      },
    ),
  )
}
