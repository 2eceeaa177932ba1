import type { Aggregate, AggregateBody } from '@kith/client'
import { dateOf } from '../app/dates.ts'

export type TimeUnit = Exclude<NonNullable<AggregateBody['group_by']>[number], string>['by']

/** The groups to plot, the span of time of each grouping field, and whether a missing value counts as 0. */
export type Plotted = Pick<Aggregate, 'groups'> & { spans: readonly (TimeUnit | undefined)[]; isAdded: boolean }

/** The bars of a plot, one for each group. */
export type Bars = { kind: 'bars'; bars: { by: unknown[]; value: number }[]; hidden: number }
/** Values over time, one for each span from the first to the last. A span without a group has 0 or null. */
export type Course = {
  kind: 'course'
  /** The first and the last day of the spans. */
  days: string[]
  series: { key: unknown; values: (number | null)[] }[]
  hidden: number
}

const [maxBars, maxSeries] = [30, 5]

/** The bars or the lines of a result. Undefined if there is nothing to plot. */
export function plotOf({ groups, spans, isAdded }: Plotted): Bars | Course | undefined {
  const rows = groups.flatMap(({ by, measures: [value] }) => (typeof value === 'number' ? [{ by, value }] : []))
  if (spans.length === 0 || rows.length === 0) return undefined
  const timeAt = spans.findIndex(unit => unit !== undefined)
  if (timeAt === -1) return barsOf(rows)
  return courseOf(rows, { unit: spans[timeAt]!, timeAt, isAdded })
}

type Row = { by: unknown[]; value: number }

const barsOf = (rows: Row[]): Bars => ({
  kind: 'bars',
  bars: rows.slice(0, maxBars),
  hidden: Math.max(0, rows.length - maxBars),
})

type Times = { unit: TimeUnit; timeAt: number; isAdded: boolean }

function courseOf(rows: Row[], { unit, timeAt, isAdded }: Times): Bars | Course {
  const dated = rows.filter(({ by }) => typeof by[timeAt] === 'string')
  const positions = dated.map(({ by }) => spanNumber(unit, by[timeAt] as string))
  const first = positions.reduce((one, other) => Math.min(one, other), Infinity)
  const last = positions.reduce((one, other) => Math.max(one, other), -Infinity)
  const length = last - first + 1
  // Two dates that are far apart would make an almost empty plot.
  if (dated.length < 2 || length > 2_000) return barsOf(rows)
  const series = new Map<string, { key: unknown; total: number; values: (number | null)[] }>()
  for (const [index, { by, value }] of dated.entries()) {
    const key = by[1 - timeAt]
    const name = JSON.stringify(key ?? null)
    const one = series.get(name) ?? { key, total: 0, values: Array(length).fill(isAdded ? 0 : null) }
    one.values[positions[index]! - first] = value
    one.total += Math.abs(value)
    series.set(name, one)
  }
  const shown = [...series.values()].sort((one, other) => other.total - one.total).slice(0, maxSeries)
  return {
    kind: 'course',
    days: Array.from({ length }, (_, index) => dayOfSpan(unit, first + index)),
    series: shown.map(({ key, values }) => ({ key, values })),
    hidden: series.size - shown.length,
  }
}

const dayMs = 86_400_000
/** A Monday. */
const firstMonday = Date.UTC(1970, 0, 5)

/** The number of the span that begins at a day. The numbers of adjacent spans differ by one. */
function spanNumber(unit: TimeUnit, day: string): number {
  const date = dateOf(day)
  const month = date.getUTCFullYear() * 12 + date.getUTCMonth()
  if (unit === 'day') return Math.floor(date.getTime() / dayMs)
  if (unit === 'week') return Math.floor((date.getTime() - firstMonday) / (7 * dayMs))
  return Math.floor(month / monthsOf[unit])
}

function dayOfSpan(unit: TimeUnit, number: number): string {
  if (unit === 'day') return isoDay(number * dayMs)
  if (unit === 'week') return isoDay(firstMonday + number * 7 * dayMs)
  const month = number * monthsOf[unit]
  return isoDay(Date.UTC(Math.floor(month / 12), month % 12))
}

const monthsOf = { month: 1, quarter: 3, year: 12 }
const isoDay = (timeMs: number) => new Date(timeMs).toISOString().split('T')[0]!

/** The upper end of an axis: a round number whose half is round too. */
export function axisEnd(max: number): number {
  if (max <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(max))
  return ([1, 1.5, 2, 3, 4, 5, 6, 8].find(step => step * power >= max) ?? 10) * power
}
