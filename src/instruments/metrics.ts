import type { Registry } from '@prometheus-io/client'
import type { Observer } from '../process/observer.ts'
import { counters, gauges, histograms } from './families.ts'

const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const statementBounds = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256]

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** The metrics that count events when they happen. */
export type Metrics = Omit<Observer, 'batch' | 'tracer'> & {
  batch(work: 'read' | 'write', items: number): void
  /** As `statement`, for a standby. */
  statementOfReader: Observer['statement']
  /** The time of the database's last answer without an error, by performance.now(). */
  answeredAt(): number
}

/** Registers the metrics and returns the functions that count. All labels come from closed lists. */
export function createMetrics(registry: Registry): Metrics {
  const counter = counters(registry)
  const overloads = counter(
    'kith_overload_refusals_total',
    'Requests refused by load shedding before kith processed them, by reason.',
    { reason: ['connection', 'draining', 'requests', 'bytes', 'connections', 'share'] },
  )
  const batches = histograms(
    registry,
    'kith_batch_items',
    'Requests per batch.',
    { work: ['read', 'write'] },
    batchBounds,
  )
  return {
    ...countRequests(registry),
    overloaded: reason => overloads(reason).add(),
    ...countStatements(registry),
    batch: (work, items) => batches(work).observe(items),
    ...countWork(registry),
  }
}

function countRequests(registry: Registry): Pick<Observer, 'requestBegan' | 'requestEnded'> {
  const counter = counters(registry)
  let inFlight = 0
  const requests = counter('kith_http_requests_total', 'Requests with a response, by method, route and status.', {
    method: [],
    route: [],
    status: [],
  })
  const durations = histograms(
    registry,
    'kith_http_request_duration_seconds',
    "Time from a request's head to the last byte of its response.",
    { method: [], route: [] },
    requestBounds,
  )
  gauges(registry, 'sum')('kith_http_requests_in_flight', 'Requests without a complete response.', () => inFlight)
  const aborted = counter('kith_http_aborted_total', 'Requests whose client disconnected before its response.')
  const refusals = counter('kith_http_refusals_total', 'Refused requests, by error code.', { error: [] })
  return {
    requestBegan: () => {
      inFlight += 1
    },
    requestEnded: ({ method, route = 'unknown', durationMs, status, error }) => {
      inFlight -= 1
      const label = methods.includes(method) ? method : 'other'
      if (status === undefined) aborted().add()
      else {
        durations(label, route).observe(durationMs / 1_000)
        requests(label, route, `${status}`).add()
      }
      if (error !== undefined) refusals(error).add()
    },
  }
}

function countStatements(
  registry: Registry,
): Pick<Metrics, 'statement' | 'statementOfReader' | 'answeredAt' | 'cache'> {
  const counter = counters(registry)
  const durations = histograms(
    registry,
    'kith_db_statement_duration_seconds',
    'Time from sending a statement to its result, by its name.',
    { statement: [] },
    statementBounds,
  )
  const caches = counter('kith_cache_requests_total', 'Cache look-ups, by cache and outcome.', {
    cache: ['token', 'definitions', 'statement'],
    outcome: ['hit', 'miss'],
  })
  let answeredAtMs = Number.NEGATIVE_INFINITY
  const count = (name: string, startedMs: number, nowMs: number) =>
    durations(name || 'unnamed').observe((nowMs - startedMs) / 1_000)
  return {
    statement: (name, startedMs, failed) => {
      const nowMs = performance.now()
      if (!failed) answeredAtMs = nowMs
      count(name, startedMs, nowMs)
    },
    statementOfReader: (name, startedMs) => count(name, startedMs, performance.now()),
    answeredAt: () => answeredAtMs,
    cache: (cache, hit) => caches(cache, hit ? 'hit' : 'miss').add(),
  }
}

type WorkMetrics =
  | ('imported' | 'accesses' | 'providerEvents' | 'readFellBack' | 'followerFailed' | 'retentionEnded')
  | ('delivered' | 'webhookDisabled')

function countWork(registry: Registry): Pick<Observer, WorkMetrics> {
  const counter = counters(registry)
  const lines = counter('kith_import_lines_total', 'Imported lines, by kind and outcome.', {
    kind: ['people', 'records'],
    outcome: ['created', 'updated', 'unchanged', 'failed'],
  })
  const entries = counter(
    'kith_access_log_entries_total',
    'Entries of the access log, recorded or dropped because the database took none.',
    { outcome: ['recorded', 'dropped'] },
  )
  // The providers are a closed list, the same as that of the sources (deliverability/schema.ts).
  const events = counter(
    'kith_provider_events_total',
    'Events of mail providers with a valid signature, by provider and outcome.',
    { provider: [], outcome: [] },
  )
  const fallbacks = counter(
    'kith_reader_fallbacks_total',
    'Reads that the primary served in place of the standby, by reason.',
    { reason: [] },
  )
  const failures = counter(
    'kith_follower_failures_total',
    'Failed runs of the followers of the change log, by follower.',
    { follower: [] },
  )
  const removals = counter(
    'kith_retention_removed_total',
    'Erased records, emptied changes and deleted batches of accesses whose retention was over, by kind.',
    { kind: ['records', 'changes', 'accesses'] },
  )
  const attempts = counter('kith_webhook_attempts_total', 'Requests to webhooks, by outcome.', {
    outcome: ['delivered', 'retried', 'failed'],
  })
  const disabled = counter('kith_webhooks_disabled_total', 'Webhooks that kith has disabled, by reason.', {
    reason: ['gone', 'failing'],
  })
  return {
    imported: (kind, outcome, count) => lines(kind, outcome).add(count),
    accesses: (outcome, count) => entries(outcome).add(count),
    providerEvents: (provider, outcome, count) => events(provider, outcome).add(count),
    readFellBack: reason => fallbacks(reason).add(),
    followerFailed: follower => failures(follower).add(),
    retentionEnded: (kind, count) => removals(kind).add(count),
    delivered: outcome => attempts(outcome).add(),
    webhookDisabled: reason => disabled(reason).add(),
  }
}
