/** Handles SIGINT (Ctrl-C) and SIGTERM during work that must stop cleanly. */
export type Interrupt = {
  /** Whether a first signal has arrived. */
  readonly asked: boolean
  /** Resolves at the first signal. */
  whenAsked: Promise<void>
  /** Aborts at the second signal. */
  signal: AbortSignal
  /** Removes the handlers: a later signal ends the process. */
  end(): void
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** Installs the handlers until `end` is called. The first signal calls `onAsked`. */
export function handleInterrupt(onAsked: () => void): Interrupt {
  const enough = Promise.withResolvers<void>()
  const atOnce = new AbortController()
  let asked = false
  const hear = () => {
    if (asked) return atOnce.abort(new Error('Stopped immediately.'))
    asked = true
    enough.resolve()
    onAsked()
  }
  for (const signal of signals) process.on(signal, hear)
  return {
    get asked() {
      return asked
    },
    whenAsked: enough.promise,
    signal: atOnce.signal,
    end() {
      for (const signal of signals) process.off(signal, hear)
    },
  }
}
