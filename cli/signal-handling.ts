/** Ctrl-C, or SIGTERM, while something runs that should end well. */
export type Interrupt = {
  /** Somebody asked to stop. */
  readonly asked: boolean
  whenAsked: Promise<void>
  /** Aborts when somebody asked again: at once, then. */
  signal: AbortSignal
  /** From now on a signal ends the process, as ever. */
  end(): void
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** Heeds the signals until `end`; `onAsked` is called at the first. */
export function handleInterrupt(onAsked: () => void): Interrupt {
  const enough = Promise.withResolvers<void>()
  const atOnce = new AbortController()
  let asked = false
  const hear = () => {
    if (asked) return atOnce.abort(new Error('Stopped at once.'))
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
