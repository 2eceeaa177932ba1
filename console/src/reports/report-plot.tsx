import { useId } from 'react'
import { useLanguage, useMessages } from '../app/language.tsx'
import { messages } from './messages.ts'
import { axisEnd, type Bars, type Course, plotOf } from './plot-data.ts'
import type { Result } from './report.ts'
import { type ReportTexts, useReportTexts } from './report-texts.ts'
import styles from './reports.module.css'

/** Draws a result: bars of the groups, or bars or lines over time. The table shows the same as text. */
export function ReportPlot(result: Result) {
  const texts = useMessages(messages)
  const { locale } = useLanguage()
  const words = useReportTexts()
  const { report, aggregate } = result
  const plot = plotOf({
    groups: aggregate.groups,
    spans: report.groups.map(({ by }) => by),
    isAdded: ['count', 'sum', 'count_distinct'].includes(report.measure),
  })
  const id = useId()
  if (!plot) return null
  const label = texts.plot(words.measureText(report), report.groups.map(({ field }) => field.label).join(', '))
  const shared = { result, label, words }
  return (
    <figure className={styles.plot} aria-labelledby={id}>
      <figcaption id={id}>{label}</figcaption>
      {plot.kind === 'bars' ? <BarPlot {...shared} plot={plot} /> : <CoursePlot {...shared} plot={plot} />}
      {plot.hidden > 0 && <p className="small">{texts.hidden(new Intl.NumberFormat(locale).format(plot.hidden))}</p>}
    </figure>
  )
}

type PlotProps<Plot> = { plot: Plot; result: Result; label: string; words: ReportTexts }

const [barHeight, barGap, textHeight] = [12, 10, 18]
const rowHeight = textHeight + barHeight + barGap
/** A longer name of a group would overlap its value. */
const maxCharacters = 34

/** Bars from left to right, each below the name of its group. Numbers below 0 go to the left. */
function BarPlot({ plot: { bars }, result: { report, labels }, label, words }: PlotProps<Bars>) {
  const texts = useMessages(messages)
  const values = bars.map(({ value }) => value)
  const low = Math.min(0, ...values)
  const width = Math.max(0, ...values) - low || 1
  const nameOf = (by: unknown[]) =>
    report.groups.map((group, at) => words.groupText(group, by[at], labels[at])).join(' · ')
  const largest = bars.reduce((one, other) => (other.value > one.value ? other : one))
  const description = texts.largest(nameOf(largest.by), words.valueText(report, largest.value))
  return (
    <svg
      className={styles.bars}
      role="img"
      aria-label={`${label}. ${description}`}
      width="100%"
      height={bars.length * rowHeight}
    >
      {bars.map(({ by, value }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars of a result are not reordered
        <g key={index} transform={`translate(0 ${index * rowHeight})`}>
          <text y={textHeight - 5}>{shortened(nameOf(by))}</text>
          <text x="100%" y={textHeight - 5} textAnchor="end">
            {words.valueText(report, value)}
          </text>
          <rect className={styles.track} y={textHeight} width="100%" height={barHeight} />
          <rect
            className={styles.bar}
            x={percent(Math.min(value, 0) - low, width)}
            y={textHeight}
            width={percent(Math.abs(value), width)}
            height={barHeight}
          />
        </g>
      ))}
    </svg>
  )
}

const percent = (part: number, whole: number) => `${(part / whole) * 100}%`
const shortened = (text: string) => (text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text)

const [height, axisWidth] = [220, 52]
/** More bars would be thinner than their gaps. */
const maxUprightBars = 62

/** One course as upright bars, or several as lines, over spans of time. */
function CoursePlot({ plot, result: { report, labels }, label, words }: PlotProps<Course>) {
  const texts = useMessages(messages)
  const { locale } = useLanguage()
  const { days, series } = plot
  const timeAt = report.groups.findIndex(({ by }) => by !== undefined)
  const values = series.flatMap(each => each.values).filter(value => value !== null)
  const high = axisEnd(values.reduce((one, other) => Math.max(one, other), 0))
  const low = values.reduce((one, other) => Math.min(one, other), 0)
  const bottom = low < 0 ? -axisEnd(-low) : 0
  const yOf = (value: number) => ((high - value) / (high - bottom)) * height
  const ticks = [high, (high + bottom) / 2, bottom]
  const short = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 2 })
  const dayText = (day: string) => words.groupText(report.groups[timeAt]!, day)
  const largest = largestOf(series)
  const description = texts.largest(dayText(days[largest.at]!), words.valueText(report, largest.value))
  const isBars = series.length === 1 && days.length <= maxUprightBars
  return (
    <>
      <div className={styles.course} role="img" aria-label={`${label}. ${description}`}>
        <svg aria-hidden="true" className={styles.scale} width={axisWidth} height={height}>
          {ticks.map(value => (
            <text key={value} x={axisWidth - 8} y={yOf(value)} dy="4" textAnchor="end">
              {short.format(value)}
            </text>
          ))}
        </svg>
        {/* The picture is stretched to the width of the page. */}
        <svg aria-hidden="true" viewBox={`0 0 ${days.length} ${height}`} preserveAspectRatio="none" height={height}>
          {ticks.map(value => (
            <line key={value} className={styles.grid} x1="0" x2={days.length} y1={yOf(value)} y2={yOf(value)} />
          ))}
          {isBars
            ? series[0]!.values.map(
                (value, at) =>
                  value !== null && (
                    <rect
                      key={days[at]}
                      className={styles.bar}
                      x={at + 0.1}
                      y={Math.min(yOf(value), yOf(0))}
                      width={0.8}
                      height={Math.abs(yOf(value) - yOf(0))}
                    />
                  ),
              )
            : series.map(({ key, values }, index) => (
                <polyline
                  key={JSON.stringify(key ?? null)}
                  className={lineClass(index)}
                  points={pointsOf(values, yOf)}
                />
              ))}
        </svg>
        <p className={styles.ends}>
          <span>{dayText(days[0]!)}</span>
          <span>{dayText(days.at(-1)!)}</span>
        </p>
      </div>
      {series.length > 1 && (
        <ul className={`row ${styles.legend}`}>
          {series.map(({ key }, index) => (
            <li key={JSON.stringify(key ?? null)}>
              <svg width="28" height="10" aria-hidden="true">
                <line className={lineClass(index)} x1="0" x2="28" y1="5" y2="5" />
              </svg>
              <bdi>{words.groupText(report.groups[1 - timeAt]!, key, labels[1 - timeAt])}</bdi>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

const lines = ['', styles.line1, styles.line2, styles.line3, styles.line4]
const lineClass = (index: number) => `${styles.line} ${lines[index]}`

const pointsOf = (values: readonly (number | null)[], yOf: (value: number) => number) =>
  values.flatMap((value, at) => (value === null ? [] : [`${at + 0.5},${yOf(value)}`])).join(' ')

function largestOf(series: Course['series']): { at: number; value: number } {
  let largest = { at: 0, value: Number.NEGATIVE_INFINITY }
  for (const { values } of series)
    for (const [at, value] of values.entries()) if (value !== null && value > largest.value) largest = { at, value }
  return largest
}
