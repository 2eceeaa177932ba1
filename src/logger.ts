import cluster from 'node:cluster'
import pino, { type Logger } from 'pino'
import type { Config } from './config.ts'

// A pipe takes so much in one piece: lines of several workers never mix. Of a process alone nothing can.
const [sharedPieceBytes, ownPieceBytes] = [4_096, 65_536]

/**
 * Logs to standard output unless told otherwise: a JSON object a line, or lines for a person where the output is a terminal
 * or KITH_LOG_FORMAT says so. Lines of one turn of the event loop are written together: at once for a
 * lone request, and under load one system call serves a dozen of them. (A call for each line was a tenth of a GET's CPU;
 * pino's own asynchronous output took 70 MB more.)
 */
export async function createLogger(
  { logLevel, logFormat }: Pick<Config, 'logLevel' | 'logFormat'>,
  output: NodeJS.WriteStream = process.stdout,
): Promise<Logger> {
  const pieceBytes = cluster.isWorker ? sharedPieceBytes : ownPieceBytes
  let lines = ''
  const flush = () => {
    if (lines !== '') output.write(lines)
    lines = ''
  }
  process.on('exit', flush)
  const write = (line: string) => {
    if (lines.length + line.length > pieceBytes) flush()
    if (lines === '') setImmediate(flush)
    lines += line
  }
  const isPretty = logFormat === 'pretty' || (logFormat === 'auto' && output.isTTY)
  const prettify = isPretty ? await loadPrettifier(output) : undefined
  return pino({ level: logLevel, base: null }, { write: prettify ? json => write(prettify(json)) : write })
}

/** Loads pino-pretty, which a service that logs JSON does without. */
async function loadPrettifier(output: NodeJS.WriteStream): Promise<(json: string) => string> {
  const { createPrettifier } = await import('./pretty-log.ts')
  // hasColors() knows NO_COLOR and terminals without colors.
  return createPrettifier({ colors: output.isTTY && output.hasColors() })
}

const againAfterMs = 60_000
const warnedAtMs = new WeakMap<Logger, Map<string, number>>()

/** Logs at level warn, a message no more than once a minute: for a condition that lasts, and that every request meets. */
export function warnOfCondition(logger: Logger, message: string): void {
  const warned = warnedAtMs.get(logger) ?? new Map<string, number>()
  warnedAtMs.set(logger, warned)
  const nowMs = performance.now()
  if (nowMs - (warned.get(message) ?? Number.NEGATIVE_INFINITY) < againAfterMs) return
  warned.set(message, nowMs)
  logger.warn(message)
}

/**
 * Writes a line of constant shape at level info, past pino's serializers: with them the line of a request took 1.3 µs and 1.6 KB
 * of a GET. `members` are the line's own, as JSON, each behind a comma.
 */
export function writeLine(logger: Logger, members: string): void {
  if (!logger.isLevelEnabled('info')) return
  const output = logger[pino.symbols.streamSym as never] as { write(line: string): void }
  output.write(`{"level":30,"time":${Date.now()}${members}}\n`)
}
