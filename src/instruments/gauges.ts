import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Registry } from '@prometheus-io/client'
import type { Database } from '../db/db.ts'
import { version } from '../version.ts'
import { createDatabaseHealth } from './database-health.ts'
import { gauge } from './families.ts'

/** What is looked at when somebody asks. */
export type Sources = {
  /** Pools by name. */
  pools: Record<string, Database>
  /** How many wait to be coalesced. */
  queues(): Record<'read' | 'write', number>
}

/** Registers what is told of the database and of what waits for it. */
export function watchSources(registry: Registry, { pools, queues }: Sources, answeredAt: () => number): void {
  gauge(registry, { name: 'kith_queue_waiting', help: 'Requests that wait for the next batch.' }, 'sum', () =>
    Object.entries(queues()).map(([work, value]) => ({ labels: { work }, value })),
  )
  const loads = () => Object.entries(pools).flatMap(([pool, db]) => (db.load ? [{ pool, ...db.load() }] : []))
  gauge(registry, { name: 'kith_db_pool_connections', help: 'Connections to the database, by pool.' }, 'sum', () =>
    loads().flatMap(({ pool, idle, used }) => [
      { labels: { pool, state: 'idle' }, value: idle },
      { labels: { pool, state: 'used' }, value: used },
    ]),
  )
  gauge(registry, { name: 'kith_db_pool_waiting', help: 'Who waits for a connection, by pool.' }, 'sum', () =>
    loads().map(({ pool, waiting }) => ({ labels: { pool }, value: waiting })),
  )
  const waitingForShare = { name: 'kith_db_share_waiting', help: 'Work that waits for the share of its organization.' }
  gauge(registry, waitingForShare, 'sum', () =>
    loads().map(({ pool, waitingForShare: value }) => ({ labels: { pool }, value })),
  )
  const look = createDatabaseHealth(Object.values(pools)[0]!, answeredAt)
  gauge(registry, { name: 'kith_db_up', help: 'Whether the database answers: 1 or 0.' }, 'min', async () => [
    { value: (await look()).up ? 1 : 0 },
  ])
  gauge(
    registry,
    { name: 'kith_change_log_rows', help: 'About how many rows the change log has.' },
    'max',
    async () => {
      const { changeLogRows } = await look()
      return changeLogRows === undefined ? [] : [{ value: changeLogRows }]
    },
  )
}

/** Registers which version runs, as a label of a constant. */
export function registerVersionGauge(registry: Registry): void {
  const about = { name: 'kith_build_info', help: 'The version of kith that runs, as a label; always 1.' }
  gauge(registry, about, 'max', () => [{ labels: { version }, value: 1 }])
}

/** Registers whether the embedded server runs. `up` is absent where there is none in this process's care. */
export function watchEmbedded(registry: Registry, up: (() => boolean) | undefined): void {
  const about = {
    name: 'kith_embedded_database_up',
    help: 'Whether the embedded PostgreSQL runs: 1 or 0; nothing of another server.',
  }
  gauge(registry, about, 'max', () => (up ? [{ value: up() ? 1 : 0 }] : []))
}

const resolutionMs = 10

/** Registers how late the event loop is. What is returned ends the watching. */
export function watchEventLoop(registry: Registry): () => void {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  const about = {
    name: 'kith_event_loop_lag_seconds',
    help: 'How late the event loop was since the last look, by quantile.',
  }
  gauge(registry, about, 'max', () => {
    // A delay is measured with the time that was asked for. Nothing is measured yet: NaN.
    const lag = (percentile: number) => Math.max(0, delays.percentile(percentile) / 1e9 - resolutionMs / 1e3) || 0
    const samples = [
      { labels: { quantile: '0.5' }, value: lag(50) },
      { labels: { quantile: '0.99' }, value: lag(99) },
    ]
    delays.reset()
    return samples
  })
  return () => delays.disable()
}
