import type { Logger } from 'pino'

export type Shutdown = {
  /** Whether it has begun. */
  readonly begun: boolean
  /** Begins it, as a signal would. */
  begin(): void
  /** What the process still waits for is given up. */
  hurry(): void
  /** Signals and errors do what they do in any process again. */
  uninstall(): void
}

type Options = {
  logger: Logger
  /** Signals that mean something else here. */
  skip: readonly NodeJS.Signals[]
  /** The process ends after this time in any case, with 1. */
  limit_ms: number
  /** Stops all that runs. `hurried` aborts when it should wait for nothing any more. */
  stop(hurried: AbortSignal): Promise<void>
}

/**
 * One stop can arrive as several signals: npm forwards the signal that its process group has been sent already, and
 * timeout(1) signals its child and then the group.
 */
const same_signal_ms = 2_000
/** Before the limit, so that the database is told to stop within it. */
const hurry_before_limit_ms = 300

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const
const errors = ['uncaughtException', 'unhandledRejection'] as const

/**
 * Ends the process in order: the first signal runs `stop`, then the process exits with 0. A signal within two seconds of
 * the first is the same stop; a later one hurries it. An error that nobody caught runs `stop` as well, and the process
 * exits with 1; so does a standard output that was closed. Nothing but the limit ends the process before `stop` has.
 */
export function installShutdown({ logger, skip, limit_ms, stop }: Options): Shutdown {
  const hurried = new AbortController()
  let begun_at_ms: number | undefined
  let exit_code = 0

  const hurry = () => hurried.abort()

  function begin() {
    if (begun_at_ms !== undefined) return
    begun_at_ms = performance.now()
    setTimeout(hurry, limit_ms - hurry_before_limit_ms)
    setTimeout(() => {
      logger.error('the time for the shutdown is over')
      process.exit(1)
    }, limit_ms)
    stop(hurried.signal)
      .catch(onError)
      .finally(() => process.exit(exit_code))
  }

  function onSignal(signal: NodeJS.Signals) {
    if (begun_at_ms === undefined) logger.info({ signal }, 'draining')
    else if (performance.now() - begun_at_ms > same_signal_ms && !hurried.signal.aborted) {
      logger.warn({ signal }, 'another signal: what is under way is given up')
      hurry()
    }
    begin()
  }

  function onError(error: unknown) {
    const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: undefined }
    logger.fatal({ fault: name, stack }, 'an error that nobody caught ends the process')
    exit_code = 1
    begin()
  }

  // Ctrl-C ends the reader of a pipe as well, and closes the output of a service that is draining.
  function onClosedOutput() {
    if (begun_at_ms === undefined) exit_code = 1
    begin()
  }

  const giveOutputBack = takeOutput(onClosedOutput)
  const heeded = signals.filter(signal => !skip.includes(signal))
  for (const signal of heeded) process.on(signal, onSignal)
  for (const event of errors) process.on(event, onError)
  return {
    get begun() {
      return begun_at_ms !== undefined
    },
    begin,
    hurry,
    uninstall: () => {
      for (const signal of heeded) process.off(signal, onSignal)
      for (const event of errors) process.off(event, onError)
      giveOutputBack()
    },
  }
}

/** The command line's own listener for errors of standard output would end the process at once. Returns what restores it. */
function takeOutput(onClosed: () => void): () => void {
  const { stdout } = process
  const listeners = stdout.listeners('error') as (() => void)[]
  stdout.removeAllListeners('error').on('error', onClosed)
  return () => {
    stdout.off('error', onClosed)
    for (const listener of listeners) stdout.on('error', listener)
  }
}
