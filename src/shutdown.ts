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
  limitMs: number
  /** Stops all that runs. `hurried` aborts when it should wait for nothing any more. */
  stop(hurried: AbortSignal): Promise<void>
}

/**
 * One stop can arrive as several signals: npm forwards the signal that its process group has been sent already, and
 * timeout(1) signals its child and then the group.
 */
const sameSignalMs = 2_000
/** Before the limit, so that the database is told to stop within it. */
const hurryBeforeLimitMs = 300

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const
const errors = ['uncaughtException', 'unhandledRejection'] as const

/**
 * Ends the process in order: the first signal runs `stop`, then the process exits with 0. A signal within two seconds of
 * the first is the same stop; a later one hurries it. An error that nobody caught runs `stop` as well, and the process
 * exits with 1; so does a standard output that was closed. Nothing but the limit ends the process before `stop` has.
 */
export function installShutdown({ logger, skip, limitMs, stop }: Options): Shutdown {
  const hurried = new AbortController()
  let begunAtMs: number | undefined
  let exitCode = 0

  const hurry = () => hurried.abort()

  function begin() {
    if (begunAtMs !== undefined) return
    begunAtMs = performance.now()
    setTimeout(hurry, limitMs - hurryBeforeLimitMs)
    setTimeout(() => {
      logger.error('the time for the shutdown is over')
      process.exit(1)
    }, limitMs)
    stop(hurried.signal)
      .catch(onError)
      .finally(() => process.exit(exitCode))
  }

  function onSignal(signal: NodeJS.Signals) {
    if (begunAtMs === undefined) logger.info({ signal }, 'draining')
    else if (performance.now() - begunAtMs > sameSignalMs && !hurried.signal.aborted) {
      logger.warn({ signal }, 'another signal: what is under way is given up')
      hurry()
    }
    begin()
  }

  function onError(error: unknown) {
    const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: undefined }
    logger.fatal({ fault: name, stack }, 'an error that nobody caught ends the process')
    exitCode = 1
    begin()
  }

  // Ctrl-C ends the reader of a pipe as well, and closes the output of a service that is draining.
  function onClosedOutput() {
    if (begunAtMs === undefined) exitCode = 1
    begin()
  }

  const giveOutputBack = takeOutput(onClosedOutput)
  const heeded = signals.filter(signal => !skip.includes(signal))
  for (const signal of heeded) process.on(signal, onSignal)
  for (const event of errors) process.on(event, onError)
  return {
    get begun() {
      return begunAtMs !== undefined
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
