import { styleText } from 'node:util'
import { printStderr } from './session.ts'

/** The progress of a command. `part` is the fraction that is done, 0 to 1, or null if the total is unknown. */
export type Reading = { count: number; part: number | null; refused?: number }

/** Shows progress on standard error: a bar on a terminal, else a line every 5 seconds. `tell` prints a message between. */
export type ProgressLine = { tell(line: string): void; end(): void }

const redrawMs = 200
const lineMs = 5_000
const barCells = 24
/** The rate is averaged over the last 50 readings, so that it follows a change. */
const remembered = 50

/** Starts to show progress. `read` is called every 0.2 seconds on a terminal, else every 5; `silent` shows only messages. */
export function startProgress(noun: string, read: () => Reading, { silent = false } = {}): ProgressLine {
  if (silent) return { tell: printStderr, end() {} }
  const output = process.stderr
  const pace = paceOf()
  const onTerminal = output.isTTY
  const erase = () => onTerminal && output.write('\r\x1b[K')
  const show = () => {
    const reading = read()
    const text = textOf(noun, reading, pace(reading))
    if (!onTerminal) return printStderr(text)
    const bar = reading.part === null ? '' : `${drawBar(reading.part)} `
    output.write(`\r${bar}${text.slice(0, Math.max(20, (output.columns ?? 80) - barCells - 4))}\x1b[K`)
  }
  const timer = setInterval(show, onTerminal ? redrawMs : lineMs).unref()
  return {
    tell(line) {
      erase()
      printStderr(line)
    },
    end() {
      clearInterval(timer)
      erase()
    },
  }
}

type Pace = { perSecond: number; leftSeconds: number | null }

function paceOf(): (reading: Reading) => Pace {
  const started = { at_ms: performance.now(), count: 0, part: 0 }
  const readings = [started]
  return ({ count, part }) => {
    const now = { at_ms: performance.now(), count, part: part ?? 0 }
    const first = readings.length < remembered ? readings[0]! : readings.shift()!
    readings.push(now)
    const seconds = Math.max((now.at_ms - first.at_ms) / 1_000, 0.001)
    const partPerSecond = (now.part - first.part) / seconds
    const leftSeconds = part === null || partPerSecond <= 0 ? null : (1 - part) / partPerSecond
    return { perSecond: (count - first.count) / seconds, leftSeconds }
  }
}

function textOf(noun: string, { count, part, refused = 0 }: Reading, { perSecond, leftSeconds }: Pace): string {
  const parts = [
    ...(part === null ? [] : [`${Math.floor(part * 100)} %`]),
    `${numeral(count)} ${noun}`,
    `${numeral(Math.round(perSecond))}/s`,
    ...(leftSeconds === null ? [] : [`${timeOf(leftSeconds)} left`]),
    ...(refused > 0 ? [`${numeral(refused)} refused`] : []),
  ]
  return parts.join(', ')
}

function drawBar(part: number): string {
  const full = Math.min(barCells, Math.max(0, Math.round(part * barCells)))
  const stream = process.stderr
  return styleText('green', '█'.repeat(full), { stream }) + styleText('dim', '░'.repeat(barCells - full), { stream })
}

/** 1234567 → 1,234,567 */
export const numeral = (count: number): string => count.toLocaleString('en-US')

/** 75 → 1 min 15 s */
export function timeOf(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`
}

/** 1234567 → 1.2 MB */
export const megabytesOf = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
