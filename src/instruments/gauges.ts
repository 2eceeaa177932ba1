import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Registry } from '@prometheus-io/client'
import type { Database } from '../db/db.ts'
import { freeBytes } from '../db/embedded.ts'
import { version } from '../process/version.ts'
import { createDatabaseHealth } from './database-health.ts'
import { gauge } from './families.ts'

/** The sources that are read at each scrape. */
export type Sources = {
  db: Database
  /** The standby of DATABASE_READ_URL. */
  reader?: Database | undefined
  /** The number of requests that wait for the next batch. */
  queues(): Record<'read' | 'write', number>
  /** The state of the standby that answers reads, at the last look. Undefined without one. */
  standby(): StandbyGauges | undefined
  /** How far the followers of the change log are behind. */
  followers(): Promise<FollowerLag[]>
  webhooks(): Promise<WebhookStates>
  /** The entries of the ledgers of all organizations. */
  ledgerEntries(): Promise<number>
  /** When the last backup was made, Unix time in seconds. Null without one. */
  lastBackup(): Promise<number | null>
}

/** Whether reads use the standby, and how far it is behind. The lag is undefined while it is unknown. */
type StandbyGauges = { condition: string; lagSeconds: number | undefined; lagBytes: number | undefined }

/** Webhooks of all organizations by state. Of active ones: deliveries that wait, those for a retry, and the age of the oldest. */
type WebhookStates = {
  active: number
  failing: number
  disabled: number
  waiting: number
  retries: number
  seconds: number
}

/** How far the followers of one name are behind: changes of all organizations, in how many, and the age of the oldest one. */
type FollowerLag = { name: string; changes: number; organizations: number; seconds: number }

/** Registers the gauges of the database, its pools and the queues. */
export function registerSourceGauges(registry: Registry, sources: Sources, answeredAt: () => number): void {
  const { db: main, reader, queues } = sources
  registerFollowerGauges(registry, sources)
  registerStandbyGauges(registry, sources)
  registerWebhookGauges(registry, sources)
  registerLedgerGauge(registry, sources)
  registerBackupGauge(registry, sources)
  gauge(registry, { name: 'kith_queue_waiting', help: 'Requests that wait for the next batch.' }, 'sum', () =>
    Object.entries(queues()).map(([work, value]) => ({ labels: { work }, value })),
  )
  const pools = { main, ...(reader && { reader }) }
  const loads = () => Object.entries(pools).flatMap(([pool, db]) => (db.load ? [{ pool, ...db.load() }] : []))
  gauge(registry, { name: 'kith_db_pool_connections', help: 'Database connections, by pool and state.' }, 'sum', () =>
    loads().flatMap(({ pool, idle, used }) => [
      { labels: { pool, state: 'idle' }, value: idle },
      { labels: { pool, state: 'used' }, value: used },
    ]),
  )
  gauge(
    registry,
    { name: 'kith_db_pool_waiting', help: 'Requests for a connection that are waiting, by pool.' },
    'sum',
    () => loads().map(({ pool, waiting }) => ({ labels: { pool }, value: waiting })),
  )
  const shareWaiting = {
    name: 'kith_db_share_waiting',
    help: 'Statements and transactions that wait because their organization holds its share of the connections.',
  }
  gauge(registry, shareWaiting, 'sum', () =>
    loads().map(({ pool, waitingForShare: value }) => ({ labels: { pool }, value })),
  )
  const checkHealth = createDatabaseHealth(main, answeredAt)
  gauge(
    registry,
    { name: 'kith_db_up', help: '1 if the database responds within a second, else 0.' },
    'min',
    async () => [{ value: (await checkHealth()).up ? 1 : 0 }],
  )
  gauge(
    registry,
    { name: 'kith_change_log_rows', help: 'Estimated rows of the change log, of all organizations.' },
    'max',
    async () => {
      const { changeLogRows } = await checkHealth()
      return changeLogRows === undefined ? [] : [{ value: changeLogRows }]
    },
  )
  gauge(
    registry,
    { name: 'kith_db_oldest_transaction_seconds', help: 'Age of the oldest transaction of the database.' },
    'max',
    async () => {
      const { oldestTransactionSeconds } = await checkHealth()
      return oldestTransactionSeconds === undefined ? [] : [{ value: oldestTransactionSeconds }]
    },
  )
}

function registerStandbyGauges(registry: Registry, { standby }: Sources) {
  const sample = (value: number | undefined) => (value === undefined ? [] : [{ value }])
  const up = {
    name: 'kith_reader_up',
    help: '1 if the standby responds and is used for reads, else 0; no sample without one.',
  }
  gauge(registry, up, 'min', () => {
    const state = standby()
    return state ? [{ value: state.condition === 'ready' ? 1 : 0 }] : []
  })
  const seconds = {
    name: 'kith_reader_lag_seconds',
    help: 'Time by which the standby is behind its primary; no sample while it is unknown.',
  }
  gauge(registry, seconds, 'max', () => sample(standby()?.lagSeconds))
  const bytes = {
    name: 'kith_reader_lag_bytes',
    help: 'Bytes of the write-ahead log that the standby has received and not replayed.',
  }
  gauge(registry, bytes, 'max', () => sample(standby()?.lagBytes))
}

/** These gauges cost a look at every organization, so scrapes within this time share a result. */
const lookCacheMs = 10_000

/** Returns a function that reads at most once in ten seconds. While the database is down, it returns `missing`. */
function cached<T>(look: () => Promise<T>, missing: T): () => Promise<T> {
  let last: { readAtMs: number; result: Promise<T> } | undefined
  return () => {
    const nowMs = performance.now()
    if (!last || nowMs - last.readAtMs > lookCacheMs) last = { readAtMs: nowMs, result: look().catch(() => missing) }
    return last.result
  }
}

function registerWebhookGauges(registry: Registry, { webhooks }: Sources) {
  const read = cached<WebhookStates | undefined>(webhooks, undefined)
  const states = { name: 'kith_webhooks', help: 'Webhooks of all organizations, by state.' }
  gauge(registry, states, 'max', async () => {
    const { active, failing, disabled } = (await read()) ?? {}
    const samples = Object.entries({ active, failing, disabled })
    return samples.flatMap(([state, value]) => (value === undefined ? [] : [{ labels: { state }, value }]))
  })
  const retries = { name: 'kith_webhook_retries_waiting', help: 'Deliveries to webhooks that wait for a retry.' }
  gauge(registry, retries, 'max', async () => {
    const found = await read()
    return found ? [{ value: found.retries }] : []
  })
  const waiting = {
    name: 'kith_webhook_deliveries_waiting',
    help: 'Deliveries that active webhooks have not delivered and not given up yet.',
  }
  gauge(registry, waiting, 'max', async () => {
    const found = await read()
    return found ? [{ value: found.waiting }] : []
  })
  const lag = {
    name: 'kith_webhook_delivery_lag_seconds',
    help: 'Age of the oldest delivery that an active webhook has not delivered and not given up yet.',
  }
  gauge(registry, lag, 'max', async () => {
    const found = await read()
    return found ? [{ value: found.seconds }] : []
  })
}

function registerLedgerGauge(registry: Registry, { ledgerEntries }: Sources) {
  const read = cached<number | undefined>(ledgerEntries, undefined)
  const entries = { name: 'kith_ledger_entries', help: 'Entries of the ledgers of all organizations.' }
  gauge(registry, entries, 'max', async () => {
    const value = await read()
    return value === undefined ? [] : [{ value }]
  })
}

function registerBackupGauge(registry: Registry, { lastBackup }: Sources) {
  const read = cached(lastBackup, null)
  const last = {
    name: 'kith_last_backup_timestamp_seconds',
    help: 'Moment of the last backup of kith backup, Unix time; no sample without one.',
  }
  gauge(registry, last, 'max', async () => {
    const value = await read()
    return value === null ? [] : [{ value }]
  })
}

function registerFollowerGauges(registry: Registry, { followers }: Sources) {
  const read = cached<FollowerLag[]>(followers, [])
  const changes = {
    name: 'kith_follower_lag_changes',
    help: 'Changes that a follower of the change log has not worked on yet, of all organizations.',
  }
  gauge(registry, changes, 'max', async () =>
    (await read()).map(({ name, changes: value }) => ({ labels: { follower: name }, value })),
  )
  const organizations = {
    name: 'kith_follower_lag_organizations',
    help: 'Organizations with changes that a follower of the change log has not worked on yet.',
  }
  gauge(registry, organizations, 'max', async () =>
    (await read()).map(({ name, organizations: value }) => ({ labels: { follower: name }, value })),
  )
  const seconds = {
    name: 'kith_follower_lag_seconds',
    help: 'Age of the oldest change that a follower of the change log has not worked on yet.',
  }
  gauge(registry, seconds, 'max', async () =>
    (await read()).map(({ name, seconds: value }) => ({ labels: { follower: name }, value })),
  )
}

/** Registers a constant gauge whose label is the running version. */
export function registerVersionGauge(registry: Registry): void {
  const info = { name: 'kith_build_info', help: 'Always 1; the label is the running version of kith.' }
  gauge(registry, info, 'max', () => [{ labels: { version }, value: 1 }])
}

/** The embedded server: whether it runs, the folder of its data, and the age of its archive, which is absent without one. */
export type EmbeddedSource = {
  up(): boolean
  dataDir: string
  archiveAgeSeconds?: (() => number | undefined) | undefined
}

/** Registers whether the embedded server runs, and the free space of its disk. `embedded` is undefined if this process does not manage one. */
export function registerEmbeddedGauges(registry: Registry, embedded: EmbeddedSource | undefined): void {
  const info = {
    name: 'kith_embedded_database_up',
    help: '1 while the embedded PostgreSQL runs, 0 while it is down; no sample with DATABASE_URL.',
  }
  gauge(registry, info, 'max', () => (embedded ? [{ value: embedded.up() ? 1 : 0 }] : []))
  const disk = {
    name: 'kith_disk_free_bytes',
    help: 'Free bytes on the disk of the embedded PostgreSQL; no sample with DATABASE_URL.',
  }
  gauge(registry, disk, 'min', async () => {
    const bytes = embedded && (await freeBytes(embedded.dataDir).catch(() => undefined))
    return bytes === undefined ? [] : [{ value: bytes }]
  })
}

/** Registers the age of the last moment to which the embedded database can be restored. */
export function registerArchiveGauge(registry: Registry, embedded: EmbeddedSource | undefined): void {
  const info = {
    name: 'kith_archive_age_seconds',
    help: 'Age of the last second to which the archive can restore; no sample without KITH_ARCHIVE.',
  }
  gauge(registry, info, 'max', () => {
    if (!embedded?.archiveAgeSeconds) return []
    // Before the first archived second, the age has no end.
    return [{ value: embedded.archiveAgeSeconds() ?? Number.POSITIVE_INFINITY }]
  })
}

/** Registers the end of the certificate that new connections get. It is undefined before kith listens, and without TLS. */
export function registerCertificateGauge(registry: Registry, endsAt: (() => Date | undefined) | undefined): void {
  const info = {
    name: 'kith_tls_certificate_expiry_timestamp_seconds',
    help: 'End of the TLS certificate that kith serves, Unix time; no sample if kith does not serve TLS.',
  }
  gauge(registry, info, 'min', () => {
    const end = endsAt?.()
    return end ? [{ value: end.getTime() / 1_000 }] : []
  })
}

/** The time between two measurements of the lag. With 10 ms they took an idle process 0.4 s of CPU a minute. */
export const eventLoopResolutionMs = 50

/** Registers the lag of the event loop. The function that it returns stops the measurement. */
export function registerEventLoopGauge(registry: Registry): () => void {
  const delays = monitorEventLoopDelay({ resolution: eventLoopResolutionMs })
  delays.enable()
  const info = {
    name: 'kith_event_loop_lag_seconds',
    help: 'Lag of the event loop since the last scrape, by quantile.',
  }
  gauge(registry, info, 'max', () => {
    // A measured delay includes the resolution. Before the first measurement it is NaN.
    const lag = (percentile: number) =>
      Math.max(0, delays.percentile(percentile) / 1e9 - eventLoopResolutionMs / 1e3) || 0
    const samples = [
      { labels: { quantile: '0.5' }, value: lag(50) },
      { labels: { quantile: '0.99' }, value: lag(99) },
    ]
    delays.reset()
    return samples
  })
  return () => delays.disable()
}
