import type { Logger } from 'pino'
import { repeat } from '../background.ts'
import type { Config } from '../config.ts'
import { type DatabasePool, openDatabase } from '../db/db.ts'
import { listMigrations } from '../db/migrate.ts'
import type { Observer } from '../observer.ts'
import { type Reads, readsOfBoth, readsOfPrimary, readsOfReader } from './reads.ts'
import { type StandbyState, watchStandby } from './standby.ts'

const lookIntervalMs = 1_000

type Parts = {
  /** The database of DATABASE_URL. */
  db: DatabasePool
  config: Pick<Config, 'role' | 'databaseReadUrl' | 'databaseConnections' | 'readerMaxLagSeconds' | 'limits'>
  /** The observer of the standby of DATABASE_READ_URL. */
  readerObserver: Observer
  statementTimeoutMs: number
  logger: Logger
}

/** The reads of a process, the pool of its standby if it has one of its own, and the state of the standby. */
export type RunningReads = {
  reads: Reads
  reader?: DatabasePool
  standby?: () => StandbyState
  stop(): Promise<void>
}

/** Starts what selects the database of each read. A standby is looked at each second. */
export async function startReads({
  db,
  config,
  readerObserver,
  statementTimeoutMs,
  logger,
}: Parts): Promise<RunningReads> {
  const { role, databaseReadUrl, databaseConnections, readerMaxLagSeconds, limits } = config
  if (role === 'primary' && databaseReadUrl === undefined) return { reads: readsOfPrimary(db), stop: async () => {} }
  const own =
    databaseReadUrl === undefined
      ? undefined
      : openDatabase(databaseReadUrl, {
          connections: databaseConnections,
          statementTimeoutMs,
          pagePatienceMs: limits.requestMs / 2,
          application_name: 'kith reads',
          isReadOnly: true,
          observer: readerObserver,
        })
  const reader = own ?? db
  const watch = watchStandby(reader, {
    maxLagSeconds: readerMaxLagSeconds,
    migrations: (await listMigrations()).length,
    onChange: state => logChange(logger, state, own !== undefined),
  })
  await watch.look()
  const looking = repeat(watch.look, lookIntervalMs, () => {})
  const reads = own ? readsOfBoth({ primary: db, reader, watch, observer: readerObserver }) : readsOfReader(db, watch)
  const stop = async () => {
    await looking.stop()
    await own?.close()
  }
  return { reads, ...(own && { reader: own }), standby: () => watch.state, stop }
}

const conditions = {
  away: 'the standby cannot be reached',
  behind: 'the standby is further behind its primary than KITH_READER_MAX_LAG_SECONDS allows',
  tables: 'the standby does not have the tables of this version of kith yet',
}

/** Logs the change of a condition once. */
function logChange(logger: Logger, { condition, isPrimary, lagSeconds }: StandbyState, hasPrimary: boolean) {
  if (condition !== 'ready') {
    const consequence = hasPrimary ? 'the primary answers all reads' : 'this reader is not ready'
    logger.warn({ condition, lag_seconds: lagSeconds }, `${conditions[condition]}: ${consequence}`)
  } else if (isPrimary)
    logger.warn('the server for reads is a primary, not a standby: it answers reads, and carries the writes too')
  else logger.info('the standby answers reads')
}
