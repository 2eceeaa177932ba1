import type { Logger } from 'pino'

export type Shutdown = ReturnType<typeof installShutdown>

type Options = {
  logger: Logger
  /** Signals that have another meaning in this process. */
  skip: readonly NodeJS.Signals[]
  /** The process exits with 1 after this time at the latest. */
  limitMs: number
  /** Stops all parts of the process. `hurried` aborts when the stop should no longer wait. */
  stop(hurried: AbortSignal): Promise<void>
}

/**
 * Signals within this time count as one stop. One stop can arrive as several signals: npm forwards a signal that its
 * process group has already received, and timeout(1) signals its child and then the group.
 */
const sameSignalMs = 2_000
/** The shutdown is hurried this long before the limit, so that the database receives its stop within the limit. */
const hurryBeforeLimitMs = 300

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const
const errors = ['uncaughtException', 'unhandledRejection'] as const

/**
 * Installs the orderly end of the process. The first signal runs `stop`, and then the process exits with 0. A signal
 * within two seconds of the first counts as the same stop, and a later one hurries it. An uncaught error or a closed
 * standard output also runs `stop`, and the process exits with 1. Only the limit ends the process before `stop` has
 * finished.
 */
export function installShutdown({ logger, skip, limitMs, stop }: Options) {
  const hurried = new AbortController()
  let begunAtMs: number | undefined
  let exitCode = 0

  /** Aborts everything that the shutdown is waiting for. */
  const hurry = () => hurried.abort()

  /** Starts the shutdown, as a signal does. */
  function begin() {
    if (begunAtMs !== undefined) return
    begunAtMs = performance.now()
    setTimeout(hurry, limitMs - hurryBeforeLimitMs)
    setTimeout(() => {
      logger.error('the shutdown exceeded its time limit; the process exits')
      process.exit(1)
    }, limitMs)
    stop(hurried.signal)
      .catch(onError)
      .finally(() => process.exit(exitCode))
  }

  function onSignal(signal: NodeJS.Signals) {
    if (begunAtMs === undefined) logger.info({ signal }, 'draining')
    else if (performance.now() - begunAtMs > sameSignalMs && !hurried.signal.aborted) {
      logger.warn({ signal }, 'another signal: requests in progress are aborted')
      hurry()
    }
    begin()
  }

  function onError(error: unknown) {
    const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: undefined }
    logger.fatal({ fault: name, stack }, 'an uncaught error ends the process')
    exitCode = 1
    begin()
  }

  // Ctrl-C also ends the reader of a pipe, which closes the output of a draining service. This is not an error.
  function onClosedOutput() {
    if (begunAtMs === undefined) exitCode = 1
    begin()
  }

  const restoreOutputListeners = replaceOutputListeners(onClosedOutput)
  const handled = signals.filter(signal => !skip.includes(signal))
  for (const signal of handled) process.on(signal, onSignal)
  for (const event of errors) process.on(event, onError)
  return {
    /** Whether the shutdown has started. */
    get hasBegun() {
      return begunAtMs !== undefined
    },
    begin,
    hurry,
    /** Restores the default handling of signals and errors. */
    uninstall: () => {
      for (const signal of handled) process.off(signal, onSignal)
      for (const event of errors) process.off(event, onError)
      restoreOutputListeners()
    },
  }
}

/**
 * Replaces the command line's listener for errors of standard output, which would end the process immediately. Returns
 * a function that restores it.
 */
function replaceOutputListeners(onClosed: () => void): () => void {
  const { stdout } = process
  const listeners = stdout.listeners('error') as (() => void)[]
  stdout.removeAllListeners('error').on('error', onClosed)
  return () => {
    stdout.off('error', onClosed)
    for (const listener of listeners) stdout.on('error', listener)
  }
}
