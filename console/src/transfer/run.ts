import { isTemporary, KithError } from '@kith/client'
import type { Stop } from '../../../transfer/retry.ts'

/** The state of an import or export. `pause` says why it waits, and whether continuing could store some lines twice. */
export type RunState = {
  phase: 'running' | 'paused' | 'done' | 'cancelled' | 'failed'
  pause: { error: unknown; isDoubling: boolean } | null
  error: unknown
}

export const startedRun: RunState = { phase: 'running', pause: null, error: undefined }

export type Decision = 'repeat' | 'leave out'

/** A waiting run continues by itself after this time. */
const retryMs = 5_000

export const isSignedOut = (error: unknown): boolean => error instanceof KithError && error.status === 401

/** A running import or export. It is independent of React: a page subscribes to its state. */
export class Run<State extends RunState> {
  #state: State
  readonly #listeners = new Set<() => void>()
  #abort = new AbortController()
  #decide: ((decision: Decision) => void) | undefined

  constructor(state: State) {
    this.#state = state
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly getState = (): State => this.#state

  get isActive(): boolean {
    return this.#state.phase === 'running' || this.#state.phase === 'paused'
  }

  /** Ends a pause. */
  goOn(decision: Decision = 'repeat'): void {
    this.#decide?.(decision)
  }

  /** Ends the work. The lines that were sent stay stored. */
  cancel(): void {
    this.#abort.abort()
    this.#decide?.('repeat')
  }

  /** Does the work, and resolves when it has ended, successfully or not. */
  protected async work(work: (stop: Stop) => Promise<void>): Promise<void> {
    this.#abort = new AbortController()
    const { signal } = this.#abort
    const whenRequested = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
    this.update({ phase: 'running', error: undefined } as Partial<State>)
    const end = (state: Partial<RunState>) =>
      this.update((signal.aborted ? { phase: 'cancelled' } : state) as Partial<State>)
    try {
      await work({
        signal,
        whenRequested,
        get isRequested() {
          return signal.aborted
        },
      })
      end({ phase: 'done' })
    } catch (error) {
      end({ phase: 'failed', error })
    }
  }

  /**
   * Waits after an error until a person decides, the pause ends, or the browser is online again. Throws a permanent
   * error.
   */
  protected async pause(error: unknown, isDoubling = false): Promise<Decision> {
    if (!isTemporary(error) && !isSignedOut(error)) throw error
    const { promise, resolve } = Promise.withResolvers<Decision>()
    this.#decide = resolve
    this.update({ phase: 'paused', pause: { error, isDoubling } } as Partial<State>)
    const goOn = () => resolve('repeat')
    const isAutomatic = !isDoubling && !isSignedOut(error)
    const timer = isAutomatic ? setTimeout(goOn, retryMs) : undefined
    if (isAutomatic) window.addEventListener('online', goOn)
    const decision = await promise
    clearTimeout(timer)
    window.removeEventListener('online', goOn)
    this.#decide = undefined
    this.update({ phase: 'running', pause: null } as Partial<State>)
    return decision
  }

  protected update(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }
}
