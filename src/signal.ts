/** What the rooms heed of an AbortSignal. A request's is a {@link Cancellation}; a tool of Node's or a platform's may give its own. */
export type Signal = {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * An AbortController and its signal in one, for what is made with every request and hardly ever used: Node's pair with one
 * listener costs 3.3 µs, a tenth of a GET.
 */
export class Cancellation implements Signal {
  aborted = false
  reason: unknown
  #listeners: (() => void)[] = []

  /** Aborts once: the first reason stays. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = []
    for (const listener of listeners) listener()
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const index = this.#listeners.indexOf(listener)
    if (index !== -1) this.#listeners.splice(index, 1)
  }
}
