import { endPrograms } from './measure.ts'

/** The cleanup of a run: everything that has to be stopped at its end. */
export type Cleanup = {
  /**
   * Starts something and registers its `stop`. If `close` runs while it starts, `close` waits for the start and then stops
   * it. A start that fails has to clean up itself. Throws after `close`.
   */
  acquire<T>(start: () => Promise<T>, stop: (started: T) => Promise<unknown>): Promise<T>
  /** Stops everything in reverse order. A second call waits for the first. Throws an AggregateError if a stop fails. */
  close(): Promise<void>
}

const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** Creates the cleanup. From now on, SIGHUP, SIGINT and SIGTERM run it and end the process. */
export function prepareCleanup(): Cleanup {
  const steps: (() => Promise<unknown>)[] = []
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= runInReverse(steps)
    return closing
  }
  // The handler stays registered: at Ctrl-C, the terminal and npm each send the signal.
  for (const [signal, code] of Object.entries(signals))
    process.on(signal, () => {
      endPrograms()
      void close().finally(() => {
        endPrograms()
        process.exit(code)
      })
    })
  return {
    acquire: async (start, stop) => {
      if (closing) throw new Error('The benchmark is stopping.')
      const started = start()
      steps.push(() => started.then(stop, () => undefined))
      return started
    },
    close,
  }
}

async function runInReverse(steps: (() => Promise<unknown>)[]): Promise<void> {
  const problems: unknown[] = []
  for (const step of steps.toReversed()) await step().catch((problem: unknown) => problems.push(problem))
  if (problems.length > 0) throw new AggregateError(problems, `The cleanup failed: ${problems.join('; ')}`)
}
