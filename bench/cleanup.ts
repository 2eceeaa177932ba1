import { endPrograms } from './measure.ts'

/** What a run has started, and undoes in the end. */
export type Ending = {
  /** Starts something and has it stopped at the end, even when the end comes while it starts. A start that fails tidies up for itself. */
  hold<T>(start: () => Promise<T>, stop: (started: T) => Promise<unknown>): Promise<T>
  /** Stops all of it, the last first. May be called again: it happens once. */
  close(): Promise<void>
}

const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** From here to `close`, a signal stops what is held and ends the process. */
export function prepareEnding(): Ending {
  const steps: (() => Promise<unknown>)[] = []
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= undo(steps)
    return closing
  }
  // Each time, not once: npm passes Ctrl-C on to a process that the terminal has told already.
  for (const [signal, code] of Object.entries(signals))
    process.on(signal, () => {
      endPrograms()
      void close().finally(() => {
        endPrograms()
        process.exit(code)
      })
    })
  return {
    hold: async (start, stop) => {
      if (closing) throw new Error('The run has been ended.')
      const started = start()
      steps.push(() => started.then(stop, () => undefined))
      return started
    },
    close,
  }
}

async function undo(steps: (() => Promise<unknown>)[]): Promise<void> {
  const problems: unknown[] = []
  for (const step of steps.toReversed()) await step().catch((problem: unknown) => problems.push(problem))
  if (problems.length > 0) throw new AggregateError(problems, `Not all was tidied up: ${problems.join('; ')}`)
}
