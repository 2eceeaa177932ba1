import type { Logger } from 'pino'
import { repeat } from '../../process/background.ts'
import type { Config } from '../../process/config.ts'
import type { Observer } from '../../process/observer.ts'
import { type DatabasePool, openDatabase } from '../db.ts'
import { listMigrations } from '../migrate.ts'
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

/** The reads of a process, and the pool of the standby of DATABASE_READ_URL. */
export type RunningReads = { reads: Reads; reader?: DatabasePool; stop(): Promise<void> }

/** Starts the selection of the database for reads. A standby is checked each second. */
export async function startReads(parts: Parts): Promise<RunningReads> {
  const { db, config, readerObserver, statementTimeoutMs, logger } = parts
  const { role, databaseReadUrl, databaseConnections, readerMaxLagSeconds, limits } = config
  const hasPrimary = role === 'primary'
  const startWatch = async (standby: DatabasePool) => {
    const watch = watchStandby(standby, {
      maxLagSeconds: readerMaxLagSeconds,
      migrations: (await listMigrations()).length,
      onChange: state => logChange(logger, state, hasPrimary),
    })
    await watch.look()
    return { watch, looking: repeat(watch.look, lookIntervalMs, () => {}) }
  }
  if (!hasPrimary) {
    const { watch, looking } = await startWatch(db)
    return { reads: readsOfReader(db, watch), stop: () => looking.stop() }
  }
  if (databaseReadUrl === undefined) return { reads: readsOfPrimary(db), stop: async () => {} }
  const reader = openDatabase(databaseReadUrl, {
    connections: databaseConnections,
    statementTimeoutMs,
    pagePatienceMs: limits.requestMs / 2,
    application_name: 'kith reads',
    isReadOnly: true,
    observer: readerObserver,
    masterKeys: db.masterKeys,
  })
  const { watch, looking } = await startWatch(reader)
  return {
    reads: readsOfBoth({ primary: db, reader, watch, observer: readerObserver }),
    reader,
    stop: async () => {
      await looking.stop()
      await reader.close()
    },
  }
}

const conditions = {
  away: 'the standby cannot be reached',
  behind: 'the standby is further behind its primary than KITH_READER_MAX_LAG_SECONDS allows',
  tables: 'the standby does not have the tables of this version of kith yet',
}

/** Logs each change of the condition once. */
function logChange(logger: Logger, { condition, isPrimary, lagSeconds }: StandbyState, hasPrimary: boolean) {
  if (condition !== 'ready') {
    const consequence = hasPrimary ? 'the primary serves all reads' : 'this reader is not ready'
    logger.warn({ condition, lag_seconds: lagSeconds }, `${conditions[condition]}: ${consequence}`)
  } else if (isPrimary)
    logger.warn('the server for reads is a primary, not a standby: it serves reads, and carries the writes too')
  else logger.info('the standby serves reads')
}
