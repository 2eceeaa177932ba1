import { KithConnectionError, type OperationsMetrics } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Badge, Facts, Loading, Notice, Page, Problem, Section } from '../ui/page.tsx'
import { Plot, type Series } from '../ui/plot.tsx'
import { DoctorSection } from './doctor-section.tsx'
import { messages } from './messages.ts'
import styles from './operations.module.css'
import { metricsQuery } from './queries.ts'

/** The page for the operator: the state of the service, its load while the page is open, and the doctor's findings. */
export function OperationsPage() {
  const texts = useMessages(messages)
  const { latest, points, error, retry } = useMetricHistory()
  return (
    <Page title={texts.operations} subtitle={texts.subtitle}>
      {error && (
        <>
          <Problem error={error} onRetry={retry} />
          {latest && error instanceof KithConnectionError && <Notice kind="caution">{texts.stale}</Notice>}
        </>
      )}
      {!latest && !error && <Loading />}
      {latest && <State metrics={latest} />}
      <DoctorSection />
      <Section title={texts.load}>
        {points.length === 0 ? <p>{texts.waiting}</p> : <LoadPlots points={points} />}
      </Section>
    </Page>
  )
}

function State({ metrics }: { metrics: OperationsMetrics }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { version, started_at, requests, database, webhooks, ledger_entries } = metrics
  const { up, standby } = database
  const badge = (isUp: boolean) => <Badge kind={isUp ? 'positive' : 'negative'}>{isUp ? texts.up : texts.down}</Badge>
  const facts: [string, React.ReactNode][] = [
    [texts.databaseState, badge(up !== false)],
    [
      texts.standby,
      standby && (
        <>
          {badge(standby.up)}{' '}
          {standby.lag_seconds !== null && texts.behind(formats.number(Math.round(standby.lag_seconds)))}
        </>
      ),
    ],
    [texts.inFlight, formats.number(requests.in_flight)],
    [
      texts.webhooks,
      webhooks &&
        texts.webhookCounts(
          formats.number(webhooks.active),
          formats.number(webhooks.failing),
          formats.number(webhooks.disabled),
        ),
    ],
    [texts.ledger, ledger_entries !== null && formats.number(ledger_entries)],
    [texts.running, started_at && formats.dateTime(started_at)],
    [texts.version, version ?? '—'],
  ]
  return <Facts facts={facts} />
}

const megabyte = 1_000_000
const colors = ['--accent', '--positive', '--caution', '--negative', '--text-muted']

/** Small plots of the load. */
function LoadPlots({ points }: { points: Point[] }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const times = points.map(({ at }) => at)
  const short = (value: number) => formats.number(Math.round(value * 10) / 10)
  const line = (label: string, color: string, read: (point: Point) => number | null) => ({
    label,
    color,
    values: points.map(read),
  })
  const plot = (label: string, ...series: Series[]) => (
    <Plot label={label} series={series} times={times} height={140} format={short} />
  )
  const followers = [...new Set(points.flatMap(({ metrics }) => metrics.followers.map(({ follower }) => follower)))]
  const secondsOf = (name: string, { metrics }: Point) =>
    metrics.followers.find(({ follower }) => follower === name)?.seconds ?? null
  return (
    <div className={styles.plots}>
      {plot(
        texts.requests,
        line(texts.allRequests, '--accent', ({ requests }) => requests),
        line(texts.shed, '--caution', ({ shed }) => shed),
        line(texts.errors, '--negative', ({ errors }) => errors),
      )}
      {plot(
        texts.latency,
        line(texts.latency, '--accent', ({ latencyMs }) => latencyMs),
      )}
      {plot(
        texts.queues,
        line(texts.reads, '--positive', ({ metrics }) => metrics.queues.read),
        line(texts.writes, '--accent', ({ metrics }) => metrics.queues.write),
        line(texts.forConnection, '--caution', ({ metrics }) =>
          metrics.database.pools.reduce((sum, { waiting }) => sum + waiting, 0),
        ),
      )}
      {plot(
        texts.eventLoop,
        line(texts.median, '--positive', ({ metrics }) => metrics.event_loop.p50_seconds * 1_000),
        line(texts.p99, '--accent', ({ metrics }) => metrics.event_loop.p99_seconds * 1_000),
      )}
      {plot(
        texts.memory,
        line(texts.resident, '--accent', ({ metrics }) => metrics.memory.resident_bytes / megabyte),
        line(texts.heap, '--positive', ({ metrics }) => metrics.memory.heap_used_bytes / megabyte),
      )}
      {plot(
        texts.cpu,
        line(texts.cpu, '--accent', ({ cpuPercent }) => cpuPercent),
      )}
      {followers.length > 0 &&
        plot(
          texts.lag,
          ...followers.map((name, index) =>
            line(name, colors[index % colors.length]!, point => secondsOf(name, point)),
          ),
        )}
    </div>
  )
}

/** The plots show the last ten minutes. */
const pollMs = 5_000
const maxPoints = 120

/** The values of one reading for the plots. A rate is the average since the previous reading. */
type Point = {
  /** A Unix time in seconds. */
  at: number
  requests: number
  shed: number
  errors: number
  latencyMs: number | null
  cpuPercent: number
  metrics: OperationsMetrics
}

/** Reads the metrics while the page is visible, and keeps the last ones for the plots. */
function useMetricHistory() {
  const [readings, setReadings] = useState<OperationsMetrics[]>([])
  const { data, error, refetch } = useQuery({ ...metricsQuery, refetchInterval: pollMs })
  useEffect(() => {
    if (data) setReadings(before => (data.at === before.at(-1)?.at ? before : [...before, data].slice(-maxPoints - 1)))
  }, [data])
  const points = readings.slice(1).map((now, index) => pointOf(now, readings[index]!))
  return { latest: data, points, error, retry: () => void refetch() }
}

const sum = (items: readonly { count: number }[]) => items.reduce((total, { count }) => total + count, 0)

function pointOf(now: OperationsMetrics, before: OperationsMetrics): Point {
  const seconds = Math.max(0.001, (Date.parse(now.at) - Date.parse(before.at)) / 1_000)
  // Counters restart at 0 when the service restarts.
  const rateOf = (count: (metrics: OperationsMetrics) => number) => Math.max(0, count(now) - count(before)) / seconds
  const answered = now.requests.durations.count - before.requests.durations.count
  const tookSeconds = now.requests.durations.sum_seconds - before.requests.durations.sum_seconds
  return {
    at: Date.parse(now.at) / 1_000,
    requests: rateOf(({ requests }) => requests.durations.count),
    shed: rateOf(({ overload }) => sum(overload)),
    errors: rateOf(({ requests }) => sum(requests.by_status.filter(({ status }) => status >= 500 && status !== 503))),
    latencyMs: answered > 0 ? (tookSeconds / answered) * 1_000 : null,
    cpuPercent: rateOf(({ cpu_seconds }) => cpu_seconds) * 100,
    metrics: now,
  }
}
