import type { Registry } from '@prometheus-io/client'
import type { ImportOutcome, Observer, Overload, RequestEnd } from '../observer.ts'
import { counters, gauge, histograms } from './families.ts'
import type { Count, Distribution } from './histogram.ts'

const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const statementBounds = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256]

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const outcomes: ImportOutcome[] = ['created', 'updated', 'unchanged', 'failed']

/** What is counted as it happens. */
export type Metrics = Omit<Observer, 'batch' | 'tracer'> & {
  batch(work: 'read' | 'write', items: number): void
  /** When the database last answered a statement without an error, as performance.now() has it. */
  answeredAt(): number
}

/** Registers what is counted, and returns what counts it. Labels come from closed lists alone. */
export function createMetrics(registry: Registry): Metrics {
  const overloads = counters(registry, {
    name: 'kith_overload_refusals_total',
    help: 'Requests that were turned away before any work was done for them, by reason.',
  })
  const byReason: Record<Overload, Count> = {
    connection: overloads({ reason: 'connection' }),
    draining: overloads({ reason: 'draining' }),
    requests: overloads({ reason: 'requests' }),
    bytes: overloads({ reason: 'bytes' }),
    slow: overloads({ reason: 'slow' }),
    busy: overloads({ reason: 'busy' }),
    connections: overloads({ reason: 'connections' }),
    share: overloads({ reason: 'share' }),
  }
  const batches = histograms(
    registry,
    { name: 'kith_batch_items', help: 'Requests that shared one batch.' },
    batchBounds,
  )
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
  }
}

type Route = { duration: Distribution; countOf: (status: number) => Count }

function countRequests(registry: Registry): Pick<Observer, 'requestBegan' | 'requestEnded'> {
  let inFlight = 0
  const requests = counters(registry, {
    name: 'kith_http_requests_total',
    help: 'Requests that were answered, by method, route and status.',
  })
  const durations = histograms(
    registry,
    {
      name: 'kith_http_request_duration_seconds',
      help: 'Time from the first byte of a request to the last of its answer.',
    },
    requestBounds,
  )
  gauge(registry, { name: 'kith_http_requests_in_flight', help: 'Requests that are not answered yet.' }, 'sum', () => [
    { value: inFlight },
  ])
  const aborted = counters(registry, {
    name: 'kith_http_aborted_total',
    help: 'Requests whose client went away before it had its answer.',
  })()
  const refusals = counters(registry, {
    name: 'kith_http_refusals_total',
    help: 'Requests that were refused, by the word of the error.',
  })
  const countRefusal = keeping((word: string) => refusals({ error: word }))
  // Two look-ups in maps of a few dozen strings; the library's own took longer than all of this.
  const routeOf = keeping((route: string) =>
    keeping(
      (method: string): Route => ({
        duration: durations({ method, route }),
        countOf: keeping((status: number) => requests({ method, route, status: `${status}` })),
      }),
    ),
  )
  const answered = ({ method, route = 'unknown', durationMs }: RequestEnd, status: number) => {
    const known = methods.includes(method) ? method : 'other'
    const { duration, countOf } = routeOf(route)(known)
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
      else answered(end, end.status)
      if (end.error !== undefined) countRefusal(end.error).value += 1
    },
  }
}

function countStatements(registry: Registry): Pick<Metrics, 'statement' | 'answeredAt'> {
  const durations = histograms(
    registry,
    { name: 'kith_db_statement_duration_seconds', help: 'Time from sending a statement to its answer, by its name.' },
    statementBounds,
  )
  const durationOf = keeping((statement: string) => durations({ statement }))
  let answeredMs = Number.NEGATIVE_INFINITY
  return {
    statement: (name, begunMs, failed) => {
      const nowMs = performance.now()
      if (!failed) answeredMs = nowMs
      durationOf(name || 'unnamed').observe((nowMs - begunMs) / 1_000)
    },
    answeredAt: () => answeredMs,
  }
}

function countCaches(registry: Registry): Observer['cache'] {
  const requests = counters(registry, {
    name: 'kith_cache_requests_total',
    help: 'Look-ups in what is remembered: tokens that were verified, definitions of organizations.',
  })
  const of = (cache: string) => ({
    hit: requests({ cache, outcome: 'hit' }),
    miss: requests({ cache, outcome: 'miss' }),
  })
  const caches = { token: of('token'), definitions: of('definitions') }
  return (cache, hit) => {
    caches[cache][hit ? 'hit' : 'miss'].value += 1
  }
}

function countImports(registry: Registry): Observer['imported'] {
  const lines = counters(registry, {
    name: 'kith_import_lines_total',
    help: 'Lines of imports, by kind and by what became of them.',
  })
  const of = (kind: string) => Object.fromEntries(outcomes.map(outcome => [outcome, lines({ kind, outcome })]))
  const kinds = { people: of('people'), records: of('records') }
  return (kind, outcome, count) => {
    kinds[kind][outcome]!.value += count
  }
}

/** Keeps what was made for a key. */
function keeping<K extends string | number, V>(make: (key: K) => V): (key: K) => V {
  const kept = new Map<K, V>()
  return key => {
    const known = kept.get(key)
    if (known !== undefined) return known
    const made = make(key)
    kept.set(key, made)
    return made
  }
}
