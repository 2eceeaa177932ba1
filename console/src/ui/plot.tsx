import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useFormats, useLanguage } from '../app/language.tsx'
import styles from './plot.module.css'

export type Series = {
  label: string
  /** A custom property, such as --accent. */
  color: string
  values: (number | null)[]
}

type PlotProps = {
  /** The name of the plotted value with its unit, for screen readers and as the caption. */
  label: string
  /** Unix times in seconds, ascending. */
  times: number[]
  series: Series[]
  height?: number
  /** Formats the values of the vertical axis. */
  format?: (value: number) => string
}

/** Lines over time. */
export function Plot({ label, times, series, height = 180, format }: PlotProps) {
  const formats = useFormats()
  const { locale } = useLanguage()
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(null)
  const show = format ?? formats.number
  const latestShow = useRef(show)
  latestShow.current = show
  const latestTimes = useRef(times)
  latestTimes.current = times
  const shape = JSON.stringify([label, height, times.length === 1, series.map(({ label, color }) => [label, color])])
  // A single point makes no line. It is drawn as a dot in the middle, with its time.
  const isAlone = times.length === 1
  // The plot is recreated only if its series change. New values go to the existing plot.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the members that the plot is made of
  useEffect(() => {
    const element = frame.current!
    // The property is a pair of light and dark, which a canvas does not understand.
    const colorOf = (name: string) => {
      element.style.color = `var(${name})`
      const { color } = getComputedStyle(element)
      element.style.color = ''
      return color
    }
    const [text, grid] = [colorOf('--text-muted'), colorOf('--border')]
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } }
    plot.current = new UPlot(
      {
        width: element.clientWidth,
        height,
        // A live legend would move the page, because it shows the values under the pointer.
        legend: { show: series.length > 1, live: false },
        scales: {
          ...(isAlone && { x: { range: (_, only) => [only - 1, only + 1] } }),
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
        },
        cursor: { drag: { x: false, y: false } },
        series: [
          {},
          ...series.map(({ label, color }) => ({ label, stroke: colorOf(color), width: 2, points: { show: isAlone } })),
        ],
        axes: [
          {
            ...axis,
            ...(isAlone && { splits: () => latestTimes.current }),
            values: (_, splits) => splits.map(timeFormat(latestTimes.current, locale)),
          },
          { ...axis, size: 60, values: (_, values) => values.map(value => latestShow.current(value)) },
        ],
      },
      [times, ...series.map(({ values }) => values)] as UPlot.AlignedData,
      element,
    )
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }))
    resize.observe(element)
    return () => {
      resize.disconnect()
      plot.current?.destroy()
    }
  }, [shape])
  useEffect(() => {
    plot.current?.setData([times, ...series.map(({ values }) => values)] as UPlot.AlignedData)
  }, [times, series])
  const last = series.map(({ label, values }) => `${label}: ${show(values.at(-1) ?? 0)}`).join(', ')
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>{label}</figcaption>
      <div ref={frame} role="img" aria-label={`${label}. ${last}`} className={styles.frame} />
    </figure>
  )
}

/** The format of the horizontal axis: days, or times of a day if the plot spans less than two. */
function timeFormat(times: number[], locale: string): (time: number) => string {
  const seconds = (times.at(-1) ?? 0) - (times[0] ?? 0)
  const options: Intl.DateTimeFormatOptions =
    seconds >= 172_800 ? { day: 'numeric', month: 'short' } : { timeStyle: seconds < 900 ? 'medium' : 'short' }
  const format = new Intl.DateTimeFormat(locale, options)
  return time => format.format(new Date(time * 1_000))
}
