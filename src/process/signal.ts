/**
 * The part of AbortSignal that the modules use. The signal of a request is a {@link Cancellation}. An AbortSignal fits
 * too.
 */
export type Signal = {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * An AbortController and its signal in one object. Every request needs one, and few requests use it. Node's pair with
 * one listener costs 3.3 µs, a tenth of a GET.
 */
export class Cancellation implements Signal {
  aborted = false
  reason: unknown
  /** Most signals have one listener at a time, so the first one needs no list. */
  #listener: (() => void) | undefined
  #others: (() => void)[] | undefined

  /** Aborts. A second call has no effect, so the first reason stays. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const [listener, others] = [this.#listener, this.#others]
    this.#listener = undefined
    this.#others = undefined
    listener?.()
    for (const other of others ?? []) other()
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#listener) this.#listener = listener
    else if (this.#others) this.#others.push(listener)
    else this.#others = [listener]
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    if (this.#listener === listener) {
      this.#listener = this.#others?.shift()
      return
    }
    const index = this.#others?.indexOf(listener) ?? -1
    if (index !== -1) this.#others!.splice(index, 1)
  }
}

/**
 * Returns the result of the work, or rejects with the reason of the signal as soon as it aborts. The work itself
 * continues.
 */
export async function untilAborted<T>(work: Promise<T>, signal: Signal): Promise<T> {
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
