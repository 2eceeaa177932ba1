import { createRefusal, Fault } from '../../errors.ts'
import { Cancellation } from '../../signal.ts'

/**
 * The time of a request, including the wait for a database connection. When it passes, the signal aborts with a Fault of 504, and then
 * `onExpired` is called. `end` must be called when the request is over.
 */
export class Deadline {
  readonly signal: Cancellation = new Cancellation()
  readonly #onExpired: (fault: Fault) => void
  #limitMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(limitMs: number, onExpired: (fault: Fault) => void = () => {}) {
    this.#onExpired = onExpired
    this.#limitMs = limitMs
    this.#start()
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Starts the time anew, with another limit. */
  restart(limitMs: number): void {
    clearTimeout(this.#timer)
    this.#limitMs = limitMs
    this.#start()
  }

  /** Runs work under the request's deadline or, if that has ended, under a deadline of its own. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    if (this.#timer) return work()
    this.#start()
    return work().finally(() => this.end())
  }

  #start() {
    this.#timer = setTimeout(() => {
      const fault = buildTimeoutFault(this.#limitMs)
      this.signal.abort(fault)
      this.#onExpired(fault)
    }, this.#limitMs)
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
