import { styleText } from 'node:util'
import { tell } from './session.ts'

/** How far something is. `part` is from 0 to 1; null where nobody knows the whole. */
export type Reading = { count: number; part: number | null; refused?: number }

/** Says on standard error how far something is: a bar on a terminal, else a line every few seconds. */
export type Meter = { tell(line: string): void; end(): void }

const redraw_ms = 200
const line_ms = 5_000
const bar_cells = 24
/** The rate is that of the last so many readings, so that it follows what happens. */
const remembered = 50

export function startMeter(noun: string, read: () => Reading, { silent = false } = {}): Meter {
  if (silent) return { tell, end() {} }
  const output = process.stderr
  const pace = paceOf()
  const on_terminal = output.isTTY
  const erase = () => on_terminal && output.write('\r\x1b[K')
  const show = () => {
    const reading = read()
    const text = textOf(noun, reading, pace(reading))
    if (!on_terminal) return tell(text)
    const bar = reading.part === null ? '' : `${drawBar(reading.part)} `
    output.write(`\r${bar}${text.slice(0, Math.max(20, (output.columns ?? 80) - bar_cells - 4))}\x1b[K`)
  }
  const timer = setInterval(show, on_terminal ? redraw_ms : line_ms).unref()
  return {
    tell(line) {
      erase()
      tell(line)
    },
    end() {
      clearInterval(timer)
      erase()
    },
  }
}

type Pace = { per_second: number; left_seconds: number | null }

function paceOf(): (reading: Reading) => Pace {
  const started = { at_ms: performance.now(), count: 0, part: 0 }
  const readings = [started]
  return ({ count, part }) => {
    const now = { at_ms: performance.now(), count, part: part ?? 0 }
    const first = readings.length < remembered ? readings[0]! : readings.shift()!
    readings.push(now)
    const seconds = Math.max((now.at_ms - first.at_ms) / 1_000, 0.001)
    const part_per_second = (now.part - first.part) / seconds
    const left_seconds = part === null || part_per_second <= 0 ? null : (1 - part) / part_per_second
    return { per_second: (count - first.count) / seconds, left_seconds }
  }
}

function textOf(noun: string, { count, part, refused = 0 }: Reading, { per_second, left_seconds }: Pace): string {
  const parts = [
    ...(part === null ? [] : [`${Math.floor(part * 100)} %`]),
    `${numeral(count)} ${noun}`,
    `${numeral(Math.round(per_second))}/s`,
    ...(left_seconds === null ? [] : [`${timeOf(left_seconds)} left`]),
    ...(refused > 0 ? [`${numeral(refused)} refused`] : []),
  ]
  return parts.join(', ')
}

function drawBar(part: number): string {
  const full = Math.min(bar_cells, Math.max(0, Math.round(part * bar_cells)))
  const stream = process.stderr
  return styleText('green', '█'.repeat(full), { stream }) + styleText('dim', '░'.repeat(bar_cells - full), { stream })
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
