import type { OperationsMetrics } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { metricsQuery } from './queries.ts'

/** The plots show the last ten minutes. */
const pollMs = 5_000
const maxPoints = 120

/** What the plots show of one reading. A rate is that of the time since the reading before. */
export type Point = {
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
export function useMetricHistory(): {
  latest: OperationsMetrics | undefined
  points: Point[]
  error: unknown
  retry: () => void
} {
  const [points, setPoints] = useState<Point[]>([])
  const [previous, setPrevious] = useState<OperationsMetrics>()
  const { data, error, refetch } = useQuery({ ...metricsQuery, refetchInterval: pollMs })
  useEffect(() => {
    if (!data || data.at === previous?.at) return
    if (previous) setPoints(before => [...before, pointOf(data, previous)].slice(-maxPoints))
    setPrevious(data)
  }, [data, previous])
  return { latest: data, points, error, retry: () => void refetch() }
}

const sum = (items: readonly { count: number }[]) => items.reduce((total, { count }) => total + count, 0)

function pointOf(now: OperationsMetrics, before: OperationsMetrics): Point {
  const seconds = Math.max(0.001, (Date.parse(now.at) - Date.parse(before.at)) / 1_000)
  // Counters begin again with 0 when the service starts again.
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
