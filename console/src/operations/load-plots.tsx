import { useFormats, useMessages } from '../app/language.tsx'
import { Plot, type Series } from '../ui/plot.tsx'
import { messages } from './messages.ts'
import type { Point } from './metric-history.ts'
import styles from './operations.module.css'

const megabyte = 1_000_000
const colors = ['--accent', '--positive', '--caution', '--negative', '--text-muted']

/** Small plots of the load. */
export function LoadPlots({ points }: { points: Point[] }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const times = points.map(({ at }) => at)
  const short = (value: number) => formats.number(Math.round(value * 10) / 10)
  const series = (label: string, color: string, read: (point: Point) => number | null): Series => ({
    label,
    color,
    values: points.map(read),
  })
  const followers = [...new Set(points.flatMap(({ metrics }) => metrics.followers.map(({ follower }) => follower)))]
  const plots: { label: string; series: Series[] }[] = [
    {
      label: texts.requests,
      series: [
        series(texts.allRequests, '--accent', ({ requests }) => requests),
        series(texts.shed, '--caution', ({ shed }) => shed),
        series(texts.errors, '--negative', ({ errors }) => errors),
      ],
    },
    { label: texts.latency, series: [series(texts.latency, '--accent', ({ latencyMs }) => latencyMs)] },
    {
      label: texts.queues,
      series: [
        series(texts.reads, '--positive', ({ metrics }) => metrics.queues.read),
        series(texts.writes, '--accent', ({ metrics }) => metrics.queues.write),
        series(texts.forConnection, '--caution', ({ metrics }) =>
          metrics.database.pools.reduce((sum, { waiting }) => sum + waiting, 0),
        ),
      ],
    },
    {
      label: texts.eventLoop,
      series: [
        series(texts.median, '--positive', ({ metrics }) => metrics.event_loop.p50_seconds * 1_000),
        series(texts.p99, '--accent', ({ metrics }) => metrics.event_loop.p99_seconds * 1_000),
      ],
    },
    {
      label: texts.memory,
      series: [
        series(texts.resident, '--accent', ({ metrics }) => metrics.memory.resident_bytes / megabyte),
        series(texts.heap, '--positive', ({ metrics }) => metrics.memory.heap_used_bytes / megabyte),
      ],
    },
    { label: texts.cpu, series: [series(texts.cpu, '--accent', ({ cpuPercent }) => cpuPercent)] },
    ...(followers.length > 0
      ? [
          {
            label: texts.lag,
            series: followers.map((name, index) =>
              series(
                name,
                colors[index % colors.length]!,
                ({ metrics }) => metrics.followers.find(({ follower }) => follower === name)?.seconds ?? null,
              ),
            ),
          },
        ]
      : []),
  ]
  return (
    <div className={styles.plots}>
      {plots.map(plot => (
        <Plot key={plot.label} {...plot} times={times} height={140} format={short} />
      ))}
    </div>
  )
}
