/** Handles SIGINT (Ctrl-C) and SIGTERM during work that must stop cleanly. */
export type Interrupt = {
  /** Whether a first signal has arrived. */
  readonly isRequested: boolean
  /** Resolves at the first signal. */
  whenRequested: Promise<void>
  /** Aborts at the second signal. */
  signal: AbortSignal
  /** Removes the handlers, so that a later signal ends the process. */
  end(): void
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** Installs the handlers until `end` is called. The first signal calls `onRequested`. */
export function handleInterrupt(onRequested: () => void): Interrupt {
  const firstSignal = Promise.withResolvers<void>()
  const secondSignal = new AbortController()
  let isRequested = false
  const handleSignal = () => {
    if (isRequested) return secondSignal.abort(new Error('Stopped immediately.'))
    isRequested = true
    firstSignal.resolve()
    onRequested()
  }
  for (const signal of signals) process.on(signal, handleSignal)
  return {
    get isRequested() {
      return isRequested
    },
    whenRequested: firstSignal.promise,
    signal: secondSignal.signal,
    end() {
      for (const signal of signals) process.off(signal, handleSignal)
    },
  }
}
