import type { Static } from 'typebox'
import { flag, nullable, Type, text, time, count as total } from '../values/json-schema.ts'

const count = total()
const seconds = Type.Number({ minimum: 0 })
const at = '2026-01-01T12:00:00.000Z'

/** The report of GET /v1/operations/doctor. */
export const doctorReport = Type.Object(
  {
    checked_at: time('When the checks ended.'),
    healthy: flag('False if a finding is `wrong`.'),
    last_backup_at: nullable(time('When `kith backup` last made a backup. Null: never.')),
    findings: Type.Array(
      Type.Object(
        {
          check: text('The check, as `kith doctor` names it.'),
          verdict: Type.Enum(['ok', 'warning', 'wrong'], {
            description: '`ok` needs no action, `warning` needs a look soon, `wrong` needs a fix now.',
          }),
          message: text(),
          advice: nullable(text('The advice. Null if the verdict is `ok`.')),
        },
        { title: 'DoctorFinding' },
      ),
    ),
  },
  {
    title: 'DoctorReport',
    description: 'The findings of the checks of `kith doctor`.',
    examples: [
      {
        checked_at: at,
        healthy: true,
        last_backup_at: at,
        findings: [{ check: 'database', verdict: 'ok', message: 'PostgreSQL 18.4 responds', advice: null }],
      },
    ],
  },
)
export type DoctorReportShape = Static<typeof doctorReport>

const histogram = {
  bounds: Type.Array(Type.Number({ minimum: 0 }), {
    description: 'The upper bounds of the buckets in seconds, ascending. The last bucket has none.',
  }),
  counts: Type.Array(count, { description: 'How many took at most the bound, and more than the one before.' }),
  sum_seconds: seconds,
  count,
}

const standby = Type.Object({ up: flag(), lag_seconds: nullable(seconds), lag_bytes: nullable(seconds) })

/** The response of GET /v1/operations/metrics, which the console plots. */
export const operationsMetrics = Type.Object(
  {
    at: time('When the metrics were read.'),
    version: nullable(text('The running version of kith.')),
    started_at: nullable(time('When the first process started.')),
    requests: Type.Object({
      in_flight: total('Requests without a complete response.'),
      aborted: total('Requests whose client disconnected before its response.'),
      by_status: Type.Array(Type.Object({ status: Type.Integer(), count }), {
        description: 'Requests with a response, by status.',
      }),
      by_error: Type.Array(Type.Object({ error: text(), count }), { description: 'Refused requests by error code.' }),
      routes: Type.Array(Type.Object({ method: text(), route: text(), count, sum_seconds: seconds }), {
        description: 'Requests with a response, by route, with the sum of their durations.',
      }),
      durations: Type.Object(histogram, { description: 'The durations of all requests with a response.' }),
    }),
    overload: Type.Array(Type.Object({ reason: text(), count }), {
      description: 'Requests that load shedding refused, by reason.',
    }),
    queues: Type.Object({ read: count, write: count }, { description: 'Requests that wait for the next batch.' }),
    database: Type.Object({
      up: nullable(flag()),
      change_log_rows: nullable(Type.Number({ minimum: 0, description: 'An estimate, of all organizations.' })),
      pools: Type.Array(
        Type.Object({ pool: text(), used: count, idle: count, waiting: count, waiting_for_share: count }),
        { description: 'The connections of each pool, and the requests that wait for one.' },
      ),
      statements: Type.Object(histogram, { description: 'The durations of all statements.' }),
      standby: nullable(standby),
    }),
    memory: Type.Object({
      resident_bytes: count,
      heap_used_bytes: count,
      heap_total_bytes: count,
      external_bytes: count,
    }),
    cpu_seconds: Type.Number({ minimum: 0, description: 'Processor time since the start.' }),
    event_loop: Type.Object(
      { p50_seconds: seconds, p99_seconds: seconds },
      { description: 'The lag of the event loop since the metrics were last read.' },
    ),
    followers: Type.Array(Type.Object({ follower: text(), changes: count, organizations: count, seconds }), {
      description:
        'How far the followers of the change log are behind, over all organizations, and in how many of them.',
    }),
    webhooks: nullable(
      Type.Object(
        {
          active: count,
          failing: count,
          disabled: count,
          retries_waiting: count,
          deliveries_waiting: count,
          lag_seconds: seconds,
        },
        {
          description:
            'Webhooks of all organizations by state. The last three are of the active ones: deliveries that wait for a retry, all that wait, ' +
            'and the age of the oldest.',
        },
      ),
    ),
    ledger_entries: nullable(total('The entries of the ledgers of all organizations.')),
  },
  {
    title: 'OperationsMetrics',
    description: 'Counts and sums grow from the start of the service. The difference of two readings is a rate.',
    examples: [
      {
        at,
        version: '1.0.0',
        started_at: at,
        requests: {
          in_flight: 1,
          aborted: 0,
          by_status: [{ status: 200, count: 3 }],
          by_error: [],
          routes: [{ method: 'GET', route: '/v1/people/{external_id}', count: 3, sum_seconds: 0.003 }],
          durations: { bounds: [0.001, 0.01], counts: [2, 1, 0], sum_seconds: 0.003, count: 3 },
        },
        overload: [{ reason: 'requests', count: 0 }],
        queues: { read: 0, write: 0 },
        database: {
          up: true,
          change_log_rows: 1_204,
          pools: [{ pool: 'main', used: 1, idle: 7, waiting: 0, waiting_for_share: 0 }],
          statements: { bounds: [0.001, 0.01], counts: [8, 1, 0], sum_seconds: 0.006, count: 9 },
          standby: null,
        },
        memory: {
          resident_bytes: 120_000_000,
          heap_used_bytes: 40_000_000,
          heap_total_bytes: 60_000_000,
          external_bytes: 4_000_000,
        },
        cpu_seconds: 1.5,
        event_loop: { p50_seconds: 0.0001, p99_seconds: 0.001 },
        followers: [{ follower: 'ledger', changes: 0, organizations: 0, seconds: 0 }],
        webhooks: {
          active: 1,
          failing: 0,
          disabled: 0,
          retries_waiting: 0,
          deliveries_waiting: 0,
          lag_seconds: 0,
        },
        ledger_entries: 12,
      },
    ],
  },
)
export type OperationsMetricsShape = Static<typeof operationsMetrics>
