import type { Registry } from '@prometheus-io/client'
import type {
  DeliveryOutcome,
  Fallback,
  ImportOutcome,
  Observer,
  Overload,
  RequestEnd,
  RetentionKind,
} from '../process/observer.ts'
import { counters, gauge, histograms } from './families.ts'
import type { Counter, Histogram } from './histogram.ts'

const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const statementBounds = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256]

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const outcomes: ImportOutcome[] = ['created', 'updated', 'unchanged', 'failed']

/** The metrics that are counted as events happen. */
export type Metrics = Omit<Observer, 'batch' | 'tracer'> & {
  batch(work: 'read' | 'write', items: number): void
  /** As `statement`, for a standby. */
  statementOfReader: Observer['statement']
  /** The time of the database's last answer without an error, by performance.now(). */
  answeredAt(): number
}

/** Registers the metrics and returns the functions that count. All labels come from closed lists. */
export function createMetrics(registry: Registry): Metrics {
  const overloads = counters(registry, {
    name: 'kith_overload_refusals_total',
    help: 'Requests refused by load shedding before kith processed them, by reason.',
  })
  const byReason: Record<Overload, Counter> = {
    connection: overloads({ reason: 'connection' }),
    draining: overloads({ reason: 'draining' }),
    requests: overloads({ reason: 'requests' }),
    bytes: overloads({ reason: 'bytes' }),
    connections: overloads({ reason: 'connections' }),
    share: overloads({ reason: 'share' }),
  }
  const batches = histograms(registry, { name: 'kith_batch_items', help: 'Requests per batch.' }, batchBounds)
  const byWork = { read: batches({ work: 'read' }), write: batches({ work: 'write' }) }
  return {
    ...countRequests(registry),
    overloaded: reason => {
      byReason[reason].value += 1
    },
    ...countStatements(registry),
    cache: countCaches(registry),
    batch: (work, items) => byWork[work].observe(items),
    imported: countImports(registry),
    accesses: countAccesses(registry),
    providerEvents: countProviderEvents(registry),
    readFellBack: countFallbacks(registry),
    followerFailed: countFollowerFailures(registry),
    retentionEnded: countRetention(registry),
    ...countDeliveries(registry),
  }
}

type Route = { duration: Histogram; countOf: (status: number) => Counter }

function countRequests(registry: Registry): Pick<Observer, 'requestBegan' | 'requestEnded'> {
  let inFlight = 0
  const requests = counters(registry, {
    name: 'kith_http_requests_total',
    help: 'Requests with a response, by method, route and status.',
  })
  const durations = histograms(
    registry,
    {
      name: 'kith_http_request_duration_seconds',
      help: "Time from a request's head to the last byte of its response.",
    },
    requestBounds,
  )
  gauge(
    registry,
    { name: 'kith_http_requests_in_flight', help: 'Requests without a complete response.' },
    'sum',
    () => [{ value: inFlight }],
  )
  const aborted = counters(registry, {
    name: 'kith_http_aborted_total',
    help: 'Requests whose client disconnected before its response.',
  })()
  const refusals = counters(registry, {
    name: 'kith_http_refusals_total',
    help: 'Refused requests, by error code.',
  })
  const countRefusal = memoize((code: string) => refusals({ error: code }))
  // Two look-ups in maps of a few dozen strings. The library's own look-up took longer than this whole function.
  const routeOf = memoize((route: string) =>
    memoize(
      (method: string): Route => ({
        duration: durations({ method, route }),
        countOf: memoize((status: number) => requests({ method, route, status: `${status}` })),
      }),
    ),
  )
  const countResponse = ({ method, route = 'unknown', durationMs }: RequestEnd, status: number) => {
    const methodLabel = methods.includes(method) ? method : 'other'
    const { duration, countOf } = routeOf(route)(methodLabel)
    duration.observe(durationMs / 1_000)
    countOf(status).value += 1
  }
  return {
    requestBegan: () => {
      inFlight += 1
    },
    requestEnded: end => {
      inFlight -= 1
      if (end.status === undefined) aborted.value += 1
      else countResponse(end, end.status)
      if (end.error !== undefined) countRefusal(end.error).value += 1
    },
  }
}

function countStatements(registry: Registry): Pick<Metrics, 'statement' | 'statementOfReader' | 'answeredAt'> {
  const durations = histograms(
    registry,
    { name: 'kith_db_statement_duration_seconds', help: 'Time from sending a statement to its result, by its name.' },
    statementBounds,
  )
  const durationOf = memoize((statement: string) => durations({ statement }))
  let answeredAtMs = Number.NEGATIVE_INFINITY
  const count = (name: string, startedMs: number, nowMs: number) =>
    durationOf(name || 'unnamed').observe((nowMs - startedMs) / 1_000)
  return {
    statement: (name, startedMs, failed) => {
      const nowMs = performance.now()
      if (!failed) answeredAtMs = nowMs
      count(name, startedMs, nowMs)
    },
    statementOfReader: (name, startedMs) => count(name, startedMs, performance.now()),
    answeredAt: () => answeredAtMs,
  }
}

function countCaches(registry: Registry): Observer['cache'] {
  const requests = counters(registry, {
    name: 'kith_cache_requests_total',
    help: 'Cache look-ups, by cache and outcome.',
  })
  const of = (cache: string) => ({
    hit: requests({ cache, outcome: 'hit' }),
    miss: requests({ cache, outcome: 'miss' }),
  })
  const caches = { token: of('token'), definitions: of('definitions'), statement: of('statement') }
  return (cache, hit) => {
    caches[cache][hit ? 'hit' : 'miss'].value += 1
  }
}

/** The providers are a closed list, that of the sources (deliverability/sources-schema.ts). */
function countProviderEvents(registry: Registry): Observer['providerEvents'] {
  const events = counters(registry, {
    name: 'kith_provider_events_total',
    help: 'Events of mail providers with a valid signature, by provider and outcome.',
  })
  const of = (outcome: string) => memoize((provider: string) => events({ provider, outcome }))
  const byOutcome = { stored: of('stored'), ignored: of('ignored') }
  return (provider, outcome, count) => {
    byOutcome[outcome](provider).value += count
  }
}

function countAccesses(registry: Registry): Observer['accesses'] {
  const entries = counters(registry, {
    name: 'kith_access_log_entries_total',
    help: 'Entries of the access log, recorded or dropped because the database took none.',
  })
  const byOutcome = { recorded: entries({ outcome: 'recorded' }), dropped: entries({ outcome: 'dropped' }) }
  return (outcome, count) => {
    byOutcome[outcome].value += count
  }
}

function countImports(registry: Registry): Observer['imported'] {
  const lines = counters(registry, {
    name: 'kith_import_lines_total',
    help: 'Imported lines, by kind and outcome.',
  })
  const of = (kind: string) => Object.fromEntries(outcomes.map(outcome => [outcome, lines({ kind, outcome })]))
  const kinds = { people: of('people'), records: of('records') }
  return (kind, outcome, count) => {
    kinds[kind][outcome]!.value += count
  }
}

function countFollowerFailures(registry: Registry): Observer['followerFailed'] {
  const failures = counters(registry, {
    name: 'kith_follower_failures_total',
    help: 'Failed runs of the followers of the change log, by follower.',
  })
  const failuresOf = memoize((follower: string) => failures({ follower }))
  return follower => {
    failuresOf(follower).value += 1
  }
}

function countFallbacks(registry: Registry): Observer['readFellBack'] {
  const fallbacks = counters(registry, {
    name: 'kith_reader_fallbacks_total',
    help: 'Reads that the primary served in place of the standby, by reason.',
  })
  const fallbacksOf = memoize((reason: Fallback) => fallbacks({ reason }))
  return reason => {
    fallbacksOf(reason).value += 1
  }
}

function countRetention(registry: Registry): Observer['retentionEnded'] {
  const removals = counters(registry, {
    name: 'kith_retention_removed_total',
    help: 'Erased records, emptied changes and deleted batches of accesses whose retention was over, by kind.',
  })
  const byKind: Record<RetentionKind, Counter> = {
    records: removals({ kind: 'records' }),
    changes: removals({ kind: 'changes' }),
    accesses: removals({ kind: 'accesses' }),
  }
  return (kind, count) => {
    byKind[kind].value += count
  }
}

function countDeliveries(registry: Registry): Pick<Observer, 'delivered' | 'webhookDisabled'> {
  const attempts = counters(registry, {
    name: 'kith_webhook_attempts_total',
    help: 'Requests to webhooks, by outcome.',
  })
  const disabled = counters(registry, {
    name: 'kith_webhooks_disabled_total',
    help: 'Webhooks that kith has disabled, by reason.',
  })
  const byOutcome: Record<DeliveryOutcome, Counter> = {
    delivered: attempts({ outcome: 'delivered' }),
    retried: attempts({ outcome: 'retried' }),
    failed: attempts({ outcome: 'failed' }),
  }
  const byReason = { gone: disabled({ reason: 'gone' }), failing: disabled({ reason: 'failing' }) }
  return {
    delivered: outcome => {
      byOutcome[outcome].value += 1
    },
    webhookDisabled: reason => {
      byReason[reason].value += 1
    },
  }
}

/** Memoizes a function of one key. */
function memoize<K extends string | number, V>(make: (key: K) => V): (key: K) => V {
  const values = new Map<K, V>()
  return key => {
    const existing = values.get(key)
    if (existing !== undefined) return existing
    const value = make(key)
    values.set(key, value)
    return value
  }
}
