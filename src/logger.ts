import pino, { type Logger } from 'pino'

// A pipe takes this much in one piece: lines of several workers never mix.
const piece_bytes = 4_096

/**
 * Logs to standard output unless told otherwise, a JSON object a line. Lines of one turn of the event loop are written together: at once for a
 * lone request, and under load one system call serves a dozen of them. (A call for each line was a tenth of a GET's CPU;
 * pino's own asynchronous output took 70 MB more.)
 */
export function createLogger(level: string, output: NodeJS.WritableStream = process.stdout): Logger {
  let lines = ''
  const flush = () => {
    if (lines !== '') output.write(lines)
    lines = ''
  }
  process.on('exit', flush)
  const write = (line: string) => {
    if (lines.length + line.length > piece_bytes) flush()
    if (lines === '') setImmediate(flush)
    lines += line
  }
  return pino({ level, base: null }, { write })
}
