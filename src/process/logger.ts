import cluster from 'node:cluster'
import pino, { type Logger as PinoLogger } from 'pino'
import type { Config } from './config.ts'

export type Logger = PinoLogger & {
  /**
   * Writes a line at level info without pino's serializers, with which the log line of a GET took 1.3 µs and 1.6 KB.
   * `members` are the line's members as JSON, each preceded by a comma.
   */
  writeLine(members: string): void
  /**
   * Logs a persistent condition that many requests encounter, at level warn. Each message is logged at most once a
   * minute.
   */
  warnOfCondition(message: string): void
}

/**
 * The milliseconds that lines wait for others, so that one system call writes them together. With a call for each turn
 * of the event loop, the calls took 8 % of the CPU of a filtered page with 32 clients.
 */
const flushMs = 10

// A pipe writes 4,096 bytes atomically, so the lines of several workers never mix. A single process may write larger
// chunks.
const [workerChunkBytes, singleChunkBytes] = [4_096, 65_536]

/**
 * Creates the logger. It writes one JSON object per line, or readable lines if the output is a terminal or
 * KITH_LOG_FORMAT is `pretty`. `output` is standard output by default. Lines are written after some milliseconds, and
 * at the latest when the process ends. A call for each line took a tenth of a GET's CPU, and pino's asynchronous output
 * 70 MB more memory.
 */
export async function createLogger(
  { logLevel, logFormat }: Pick<Config, 'logLevel' | 'logFormat'>,
  output: NodeJS.WriteStream = process.stdout,
): Promise<Logger> {
  const chunkBytes = cluster.isWorker ? workerChunkBytes : singleChunkBytes
  let lines = ''
  const flush = () => {
    if (lines !== '') output.write(lines)
    lines = ''
  }
  process.on('exit', flush)
  const write = (line: string) => {
    if (lines.length + line.length > chunkBytes) flush()
    if (lines === '') setTimeout(flush, flushMs)
    lines += line
  }
  const isPretty = logFormat === 'pretty' || (logFormat === 'auto' && output.isTTY)
  const prettify = isPretty ? await loadPrettifier(output) : undefined
  return loggerTo(prettify ? json => write(prettify(json)) : write, logLevel)
}

const repeatAfterMs = 60_000

/** Creates a logger whose lines go to `write`. */
export function loggerTo(write: (line: string) => void, level: string): Logger {
  const logger = pino({ level, base: null }, { write })
  const warnedAtMs = new Map<string, number>()
  return Object.assign(logger, {
    writeLine: (members: string) => {
      if (logger.isLevelEnabled('info')) write(`{"level":30,"time":${Date.now()}${members}}\n`)
    },
    warnOfCondition: (message: string) => {
      const nowMs = performance.now()
      if (nowMs - (warnedAtMs.get(message) ?? Number.NEGATIVE_INFINITY) < repeatAfterMs) return
      warnedAtMs.set(message, nowMs)
      logger.warn(message)
    },
  })
}

/** Loads pino-pretty, which a service that logs JSON does not need. */
async function loadPrettifier(output: NodeJS.WriteStream): Promise<(json: string) => string> {
  const { createPrettifier } = await import('./pretty-log.ts')
  // hasColors() respects NO_COLOR and terminals without colors.
  return createPrettifier({ colors: output.isTTY && output.hasColors() })
}
