import type { Labels } from '../instruments/families.ts'
import { shareFor } from '../instruments/single-flight.ts'
import type { Instruments } from '../process/observer.ts'
import type { OperationsMetricsShape } from './schema.ts'

/** Requests within this time share a reading, which takes some milliseconds of the event loop. */
const cacheMs = 1_000

/** Returns a function that reads the metrics of the service, of all workers, from the registry of /metrics. */
export function createMetricsReader({ scrape }: Pick<Instruments, 'scrape'>): () => Promise<OperationsMetricsShape> {
  return shareFor(cacheMs, async () => reportOf(parseSamples((await scrape()).text), new Date()))
}

/** The selection of the metrics that {@link OperationsMetricsShape} describes. */
export function reportOf(samples: Samples, now: Date): OperationsMetricsShape {
  const { find, sum, sumBy, of } = samples
  const startedAt = find('process_start_time_seconds')
  const webhookStates = of('kith_webhooks').length > 0
  return {
    at: now.toISOString(),
    version: of('kith_build_info')[0]?.labels.version ?? null,
    started_at: startedAt === undefined ? null : new Date(startedAt * 1_000).toISOString(),
    requests: requestsOf(samples),
    overload: sumBy('kith_overload_refusals_total', 'reason').map(([reason, count]) => ({ reason, count })),
    queues: {
      read: sum('kith_queue_waiting', { work: 'read' }),
      write: sum('kith_queue_waiting', { work: 'write' }),
    },
    database: databaseOf(samples),
    memory: {
      resident_bytes: sum('process_resident_memory_bytes'),
      heap_used_bytes: sum('nodejs_heap_size_used_bytes'),
      heap_total_bytes: sum('nodejs_heap_size_total_bytes'),
      external_bytes: sum('nodejs_external_memory_bytes'),
    },
    cpu_seconds: sum('process_cpu_seconds_total'),
    event_loop: {
      p50_seconds: sum('kith_event_loop_lag_seconds', { quantile: '0.5' }),
      p99_seconds: sum('kith_event_loop_lag_seconds', { quantile: '0.99' }),
    },
    followers: sumBy('kith_follower_lag_changes', 'follower').map(([follower, changes]) => ({
      follower,
      changes,
      organizations: sum('kith_follower_lag_organizations', { follower }),
      seconds: sum('kith_follower_lag_seconds', { follower }),
    })),
    webhooks: webhookStates
      ? {
          active: sum('kith_webhooks', { state: 'active' }),
          failing: sum('kith_webhooks', { state: 'failing' }),
          disabled: sum('kith_webhooks', { state: 'disabled' }),
          retries_waiting: sum('kith_webhook_retries_waiting'),
          deliveries_waiting: sum('kith_webhook_deliveries_waiting'),
          lag_seconds: sum('kith_webhook_delivery_lag_seconds'),
        }
      : null,
    ledger_entries: find('kith_ledger_entries') ?? null,
  }
}

function requestsOf({ of, sum, sumBy }: Samples): OperationsMetricsShape['requests'] {
  const duration = 'kith_http_request_duration_seconds'
  return {
    in_flight: sum('kith_http_requests_in_flight'),
    aborted: sum('kith_http_aborted_total'),
    by_status: sumBy('kith_http_requests_total', 'status').map(([status, count]) => ({
      status: Number(status),
      count,
    })),
    by_error: sumBy('kith_http_refusals_total', 'error').map(([error, count]) => ({ error, count })),
    routes: of(`${duration}_count`).map(({ labels: { method = '', route = '' }, value: count }) => ({
      method,
      route,
      count,
      sum_seconds: sum(`${duration}_sum`, { method, route }),
    })),
    durations: histogramOf({ sum, sumBy }, duration),
  }
}

function databaseOf({ find, sum, sumBy }: Samples): OperationsMetricsShape['database'] {
  const isUp = find('kith_db_up')
  const isStandbyUp = find('kith_reader_up')
  return {
    up: isUp === undefined ? null : isUp === 1,
    change_log_rows: find('kith_change_log_rows') ?? null,
    pools: sumBy('kith_db_pool_waiting', 'pool').map(([pool, waiting]) => ({
      pool,
      used: sum('kith_db_pool_connections', { pool, state: 'used' }),
      idle: sum('kith_db_pool_connections', { pool, state: 'idle' }),
      waiting,
      waiting_for_share: sum('kith_db_share_waiting', { pool }),
    })),
    statements: histogramOf({ sum, sumBy }, 'kith_db_statement_duration_seconds'),
    standby:
      isStandbyUp === undefined
        ? null
        : {
            up: isStandbyUp === 1,
            lag_seconds: find('kith_reader_lag_seconds') ?? null,
            lag_bytes: find('kith_reader_lag_bytes') ?? null,
          },
  }
}

/** The sum of a histogram over all of its labels. In the text format, a bucket includes the lower ones. */
function histogramOf({ sum, sumBy }: Pick<Samples, 'sum' | 'sumBy'>, name: string) {
  const buckets = sumBy(`${name}_bucket`, 'le')
    .map(([le, count]) => ({ bound: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), count }))
    .sort((one, other) => one.bound - other.bound)
  return {
    bounds: buckets.map(({ bound }) => bound).filter(Number.isFinite),
    counts: buckets.map(({ count }, index) => count - (buckets[index - 1]?.count ?? 0)),
    sum_seconds: sum(`${name}_sum`),
    count: sum(`${name}_count`),
  }
}

type Sample = { labels: Labels; value: number }

/** The samples of a scrape, by the name of their metric. */
type Samples = {
  of(name: string): Sample[]
  /** The sum of the samples with these labels, or undefined without any. */
  find(name: string, labels?: Labels): number | undefined
  /** As `find`, but 0 without samples. */
  sum(name: string, labels?: Labels): number
  /** Sums by the values of a label, in the order of the values. */
  sumBy(name: string, label: string): [labelValue: string, value: number][]
}

const linePattern = /^(\w+)(?:\{(.*)\})? (\S+)$/
const labelPattern = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Parses Prometheus' text format in the form that kith writes: one sample per line, without times. */
export function parseSamples(text: string): Samples {
  const byName = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = linePattern.exec(line) ?? []
    if (name === undefined) continue
    const samples = byName.get(name) ?? []
    byName.set(name, samples)
    samples.push({ labels: parseLabels(labels), value: Number(value) })
  }
  const of = (name: string) => byName.get(name) ?? []
  const find = (name: string, labels: Labels = {}) => {
    const found = of(name).filter(sample =>
      Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
  }
  return {
    of,
    find,
    sum: (name, labels) => find(name, labels) ?? 0,
    sumBy: (name, label) => {
      const groups = Map.groupBy(of(name), ({ labels }) => labels[label] ?? '')
      const sums = [...groups].map(([key, samples]): [string, number] => [
        key,
        samples.reduce((sum, { value }) => sum + value, 0),
      ])
      return sums.sort(([one], [other]) => (one < other ? -1 : 1))
    },
  }
}

const escapes: Record<string, string> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' }

const parseLabels = (text: string): Labels =>
  Object.fromEntries(
    [...text.matchAll(labelPattern)].map(([, key, value]) => [
      key!,
      value!.replace(/\\./g, found => escapes[found] ?? found),
    ]),
  )
