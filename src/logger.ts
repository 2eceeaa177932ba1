import pino, { type Logger } from 'pino'

// A pipe takes this much in one piece: lines of several workers never mix.
const piece_bytes = 4_096
/** Lines that nobody takes are dropped beyond this: a reader that hangs must not fill the memory. */
const waiting_bytes = 16 * 1_048_576

/**
 * Logs to standard output, a JSON object a line. Lines are written beside the work and not in it: a lone one at once, and
 * those that come while one is being written together (a write for each line was a tenth of a GET's CPU, and a reader
 * that paused for a moment stopped the service for 100 ms).
 */
export function createLogger(level: string): Logger {
  const output = pino.destination({ fd: 1, sync: false, maxWrite: piece_bytes, maxLength: waiting_bytes })
  process.on('exit', () => {
    try {
      output.flushSync()
    } catch {
      // Nobody reads any more.
    }
  })
  return pino({ level, base: null }, output)
}
