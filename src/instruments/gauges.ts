import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Registry } from '@prometheus-io/client'
import type { Database } from '../db/db.ts'
import { freeBytes } from '../db/embedded.ts'
import type { FollowerLag, WebhookStates } from '../process/observer.ts'
import { untilAborted } from '../process/signal.ts'
import { version } from '../process/version.ts'
import { gauges, samplesBy } from './families.ts'
import { shareFor } from './single-flight.ts'
import { estimateChangesSql } from './sql.ts'

/** The sources that are read at each scrape. */
export type Sources = {
  db: Database
  /** The standby of DATABASE_READ_URL. */
  reader?: Database | undefined
  /** The number of requests that wait for the next batch. */
  queues(): Record<'read' | 'write', number>
  /** The last observed state of the standby that answers reads. Undefined without a standby. */
  standby(): StandbyGauges | undefined
  followers(): Promise<FollowerLag[]>
  webhooks(): Promise<WebhookStates>
  /** The entries of the ledgers of all organizations. */
  ledgerEntries(): Promise<number>
  /** The time of the last backup, Unix time in seconds. Null without a backup. */
  lastBackup(): Promise<number | null>
}

/** Whether reads use the standby, and its lag, which is undefined while unknown. */
type StandbyGauges = { condition: string; lagSeconds: number | undefined; lagBytes: number | undefined }

/** Some gauges read every organization, so scrapes within this time share a result. */
const lookCacheMs = 10_000

/** The result is undefined while the database is down. */
const cached = <T>(look: () => Promise<T>) => shareFor(lookCacheMs, () => look().catch(() => undefined))

/** Registers the gauges of the database, its pools and the queues. */
export function registerSourceGauges(registry: Registry, sources: Sources, answeredAt: () => number): void {
  const { db: main, reader, queues, standby } = sources
  const [sum, max, min] = [gauges(registry, 'sum'), gauges(registry, 'max'), gauges(registry, 'min')]
  registerLooks(registry, sources)
  min('kith_reader_up', '1 if the standby responds and is used for reads, else 0; no sample without one.', () => {
    const state = standby()
    return state && Number(state.condition === 'ready')
  })
  max(
    'kith_reader_lag_seconds',
    'Time by which the standby is behind its primary; no sample while it is unknown.',
    () => standby()?.lagSeconds,
  )
  max(
    'kith_reader_lag_bytes',
    'Bytes of the write-ahead log that the standby has received and not replayed.',
    () => standby()?.lagBytes,
  )
  sum('kith_queue_waiting', 'Requests that wait for the next batch.', () => samplesBy('work', queues()))
  const pools = { main, ...(reader && { reader }) }
  const loads = () => Object.entries(pools).flatMap(([pool, db]) => (db.load ? [{ pool, ...db.load() }] : []))
  sum('kith_db_pool_connections', 'Database connections, by pool and state.', () =>
    loads().flatMap(({ pool, idle, used }) => [
      { labels: { pool, state: 'idle' }, value: idle },
      { labels: { pool, state: 'used' }, value: used },
    ]),
  )
  sum('kith_db_pool_waiting', 'Requests for a connection that are waiting, by pool.', () =>
    loads().map(({ pool, waiting: value }) => ({ labels: { pool }, value })),
  )
  sum(
    'kith_db_share_waiting',
    'Statements and transactions that wait because their organization holds its share of the connections.',
    () => loads().map(({ pool, waitingForShare: value }) => ({ labels: { pool }, value })),
  )
  const estimate = shareFor(healthMs, () => estimateInTime(main))
  // The database is up if it answers other statements while the estimate waits for a connection.
  min('kith_db_up', '1 if the database responds within a second, else 0.', async () =>
    Number((await estimate()) !== undefined || performance.now() - answeredAt() < healthMs),
  )
  let lastRows: number | undefined
  max('kith_change_log_rows', 'Estimated rows of the change log, of all organizations.', async () => {
    lastRows = (await estimate())?.rows ?? lastRows
    return lastRows
  })
  max(
    'kith_db_oldest_transaction_seconds',
    'Age of the oldest transaction of the database.',
    async () => (await estimate())?.transaction_seconds,
  )
}

type Estimate = { rows: number; transaction_seconds: number }

/**
 * The metrics need no token, so sharing the estimate limits their queries to one per second. The estimate waits as long
 * for its answer.
 */
const healthMs = 1_000

/**
 * The estimate. Undefined if the database has answered nothing within a second, even if the statement itself stays
 * stuck for longer.
 */
async function estimateInTime(db: Database): Promise<Estimate | undefined> {
  const signal = AbortSignal.timeout(healthMs)
  const answering = untilAborted(db.query<Estimate>(estimateChangesSql, [], signal), signal)
  const [row] = await answering.catch(() => [])
  return row
}

/** Registers the gauges of followers and other background work. */
function registerLooks(registry: Registry, sources: Sources) {
  const max = gauges(registry, 'max')
  const [followers, webhooks] = [cached(sources.followers), cached(sources.webhooks)]
  const ofFollowers = (name: 'changes' | 'organizations' | 'seconds') => async () =>
    ((await followers()) ?? []).map(lag => ({ labels: { follower: lag.name }, value: lag[name] }))
  max(
    'kith_follower_lag_changes',
    'Changes that a follower of the change log has not worked on yet, of all organizations.',
    ofFollowers('changes'),
  )
  max(
    'kith_follower_lag_organizations',
    'Organizations with changes that a follower of the change log has not worked on yet.',
    ofFollowers('organizations'),
  )
  max(
    'kith_follower_lag_seconds',
    'Age of the oldest change that a follower of the change log has not worked on yet.',
    ofFollowers('seconds'),
  )
  max('kith_webhooks', 'Webhooks of all organizations, by state.', async () => {
    const states = await webhooks()
    if (!states) return undefined
    const { active, failing, disabled } = states
    return samplesBy('state', { active, failing, disabled })
  })
  max(
    'kith_webhook_retries_waiting',
    'Deliveries to webhooks that wait for a retry.',
    async () => (await webhooks())?.retries,
  )
  max(
    'kith_webhook_deliveries_waiting',
    'Deliveries that active webhooks have not delivered and not given up yet.',
    async () => (await webhooks())?.waiting,
  )
  max(
    'kith_webhook_delivery_lag_seconds',
    'Age of the oldest delivery that an active webhook has not delivered and not given up yet.',
    async () => (await webhooks())?.seconds,
  )
  max('kith_ledger_entries', 'Entries of the ledgers of all organizations.', cached(sources.ledgerEntries))
  max(
    'kith_last_backup_timestamp_seconds',
    'Moment of the last backup of kith backup, Unix time; no sample without one.',
    cached(sources.lastBackup),
  )
}

/**
 * The embedded server: whether it runs, the folder of its data, and the age of its archive, absent without an archive.
 */
export type EmbeddedSource = {
  up(): boolean
  dataDir: string
  archiveAgeSeconds?: (() => number | undefined) | undefined
}

/**
 * Registers whether the embedded server runs, the free space of its disk, and the age of the latest time to which it
 * can be restored. `embedded` is undefined if this process does not manage one.
 */
export function registerEmbeddedGauges(registry: Registry, embedded: EmbeddedSource | undefined): void {
  const [max, min] = [gauges(registry, 'max'), gauges(registry, 'min')]
  max(
    'kith_embedded_database_up',
    '1 while the embedded PostgreSQL runs, 0 while it is down; no sample with DATABASE_URL.',
    () => embedded && Number(embedded.up()),
  )
  min(
    'kith_disk_free_bytes',
    'Free bytes on the disk of the embedded PostgreSQL; no sample with DATABASE_URL.',
    () => embedded && freeBytes(embedded.dataDir).catch(() => undefined),
  )
  max(
    'kith_archive_age_seconds',
    'Age of the last second to which the archive can restore; no sample without KITH_ARCHIVE.',
    // Before the first archived second, the age is infinite.
    () => embedded?.archiveAgeSeconds && (embedded.archiveAgeSeconds() ?? Number.POSITIVE_INFINITY),
  )
}

/** The time between two measurements of the lag. With 10 ms they took an idle process 0.4 s of CPU a minute. */
export const eventLoopResolutionMs = 50

/**
 * Registers the running version, the end of the certificate for new connections, and the lag of the event loop. The end
 * of the certificate is undefined before kith listens and without TLS. The function that it returns stops the
 * measurement.
 */
export function registerProcessGauges(registry: Registry, endsAt: (() => Date | undefined) | undefined): () => void {
  const [max, min] = [gauges(registry, 'max'), gauges(registry, 'min')]
  max('kith_build_info', 'Always 1; the label is the running version of kith.', () =>
    samplesBy('version', { [version]: 1 }),
  )
  min(
    'kith_tls_certificate_expiry_timestamp_seconds',
    'End of the TLS certificate that kith serves, Unix time; no sample if kith does not serve TLS.',
    () => {
      const end = endsAt?.()
      return end && end.getTime() / 1_000
    },
  )
  const delays = monitorEventLoopDelay({ resolution: eventLoopResolutionMs })
  delays.enable()
  max('kith_event_loop_lag_seconds', 'Lag of the event loop since the last scrape, by quantile.', () => {
    // A measured delay includes the resolution. Before the first measurement it is NaN.
    const lag = (percentile: number) =>
      Math.max(0, delays.percentile(percentile) / 1e9 - eventLoopResolutionMs / 1e3) || 0
    const samples = samplesBy('quantile', { '0.5': lag(50), '0.99': lag(99) })
    delays.reset()
    return samples
  })
  return () => delays.disable()
}
