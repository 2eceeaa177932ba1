import { styleText } from 'node:util'
import { printStderr } from './terminal.ts'

/** The progress of a command. `fraction` is the completed part, 0 to 1, or null if the total is unknown. */
export type ProgressReading = { count: number; fraction: number | null; refused?: number }

/**
 * Shows progress on standard error: a bar on a terminal, else a line every 5 seconds. `print` prints a message above.
 */
export type ProgressLine = { print(line: string): void; end(): void }

const redrawMs = 200
const printMs = 5_000
const barCells = 24
/** A narrower terminal shows only the numbers. */
const minBarColumns = 80
/** The rate is averaged over the last 50 readings, so that it follows a change. */
const rateReadings = 50

/** The options of a command that shows no progress. With `--json`, its only output is the result. */
export type QuietOptions = { quiet?: boolean | undefined; json?: boolean | undefined }

/**
 * Starts to show progress. It calls `readProgress` every 0.2 seconds on a terminal, else every 5. A quiet command shows
 * only messages.
 */
export function startProgress(
  noun: string,
  readProgress: () => ProgressReading,
  { quiet, json }: QuietOptions,
): ProgressLine {
  if (quiet || json) return { print: printStderr, end() {} }
  const output = process.stderr
  const rateOf = createRateMeter()
  const onTerminal = output.isTTY
  const erase = () => onTerminal && output.write('\r\x1b[K')
  const show = () => {
    const current = readProgress()
    const text = textOf(noun, current, rateOf(current))
    if (!onTerminal) return printStderr(text)
    const columns = output.columns || 80
    const hasBar = current.fraction !== null && columns >= minBarColumns
    const bar = hasBar ? `${drawBar(current.fraction!)} ` : ''
    // The text is cut to the width, because a wrapped line cannot be redrawn.
    output.write(`\r${bar}${text.slice(0, columns - 1 - (hasBar ? barCells + 1 : 0))}\x1b[K`)
  }
  const timer = setInterval(show, onTerminal ? redrawMs : printMs).unref()
  return {
    print(line) {
      erase()
      printStderr(line)
    },
    end() {
      clearInterval(timer)
      erase()
    },
  }
}

/** Shows progress while `work` runs. */
export async function withProgress<T>(
  noun: string,
  readProgress: () => ProgressReading,
  options: QuietOptions,
  work: (line: ProgressLine) => Promise<T>,
): Promise<T> {
  const line = startProgress(noun, readProgress, options)
  return work(line).finally(line.end)
}

type Rate = { perSecond: number; leftSeconds: number | null }

function createRateMeter(): (current: ProgressReading) => Rate {
  const start = { atMs: performance.now(), count: 0, fraction: 0 }
  const readings = [start]
  return ({ count, fraction }) => {
    const now = { atMs: performance.now(), count, fraction: fraction ?? 0 }
    const first = readings.length < rateReadings ? readings[0]! : readings.shift()!
    readings.push(now)
    const seconds = Math.max((now.atMs - first.atMs) / 1_000, 0.001)
    const fractionPerSecond = (now.fraction - first.fraction) / seconds
    const leftSeconds = fraction === null || fractionPerSecond <= 0 ? null : (1 - fraction) / fractionPerSecond
    return { perSecond: (count - first.count) / seconds, leftSeconds }
  }
}

function textOf(
  noun: string,
  { count, fraction, refused = 0 }: ProgressReading,
  { perSecond, leftSeconds }: Rate,
): string {
  const parts = [
    ...(fraction === null ? [] : [`${Math.floor(fraction * 100)} %`]),
    `${formatCount(count)} ${noun}`,
    `${formatCount(Math.round(perSecond))}/s`,
    ...(leftSeconds === null ? [] : [`${formatDuration(leftSeconds)} left`]),
    ...(refused > 0 ? [`${formatCount(refused)} refused`] : []),
  ]
  return parts.join(', ')
}

function drawBar(fraction: number): string {
  const full = Math.min(barCells, Math.max(0, Math.round(fraction * barCells)))
  const stream = process.stderr
  return styleText('green', '█'.repeat(full), { stream }) + styleText('dim', '░'.repeat(barCells - full), { stream })
}

/** 1234567 → 1,234,567 */
export const formatCount = (count: number): string => count.toLocaleString('en-US')

/** 75 → 1 min 15 s */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`
}

/** 1234567 → 1.2 MB */
export const formatMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
