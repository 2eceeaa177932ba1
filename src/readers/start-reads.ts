import type { Logger } from 'pino'
import { type Background, repeat } from '../background.ts'
import type { CellPool } from '../cells/cell-pool.ts'
import type { Config } from '../config.ts'
import { type DatabasePool, openDatabase } from '../db/db.ts'
import { listMigrations } from '../db/migrate.ts'
import type { Observer } from '../observer.ts'
import { type Reads, readsOfBoth, readsOfPrimary, readsOfReader, type Standby } from './reads.ts'
import { Sequences } from './sequences.ts'
import { type StandbyState, type StandbyWatch, watchStandby } from './standby.ts'

const lookIntervalMs = 1_000

type Parts = {
  /** The databases of DATABASE_URL and KITH_CELLS. */
  db: CellPool
  config: Pick<Config, 'role' | 'databaseReadUrl' | 'cells' | 'databaseConnections' | 'readerMaxLagSeconds' | 'limits'>
  /** The observer of the standbys that have a URL of their own. */
  readerObserver: Observer
  statementTimeoutMs: number
  logger: Logger
}

/** The reads of a process, the pools of its standbys that have a URL of their own by name, and the states of all of its standbys. */
export type RunningReads = {
  reads: Reads
  readers: Readonly<Record<string, DatabasePool>>
  standbys: readonly (() => StandbyState)[]
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
  const migrations = (await listMigrations()).length
  const hasPrimary = role === 'primary'
  const watch = (standby: DatabasePool, cell?: string) =>
    watchStandby(standby, {
      maxLagSeconds: readerMaxLagSeconds,
      migrations,
      cell,
      onChange: state => logChange(cell === undefined ? logger : logger.child({ cell }), state, hasPrimary),
    })
  if (!hasPrimary) {
    const own = watch(db)
    const looking = await startLooking([own])
    return { reads: readsOfReader(db, own), readers: {}, standbys: [() => own.state], stop: () => looking.stop() }
  }
  const standbys = new Map<DatabasePool, Standby>()
  const readers: Record<string, DatabasePool> = {}
  // A single cell has no name.
  const cells: readonly { name?: string; db: DatabasePool }[] = db.directory?.cells ?? [{ db }]
  const readUrls = [databaseReadUrl, ...config.cells.map(({ readUrl }) => readUrl)]
  for (const [index, { name, db: cell }] of cells.entries()) {
    const url = readUrls[index]
    if (url === undefined) continue
    const standby = openDatabase(url, {
      connections: databaseConnections,
      statementTimeoutMs,
      pagePatienceMs: limits.requestMs / 2,
      application_name: 'kith reads',
      isReadOnly: true,
      observer: readerObserver,
    })
    standbys.set(cell, { db: standby, watch: watch(standby, name), sequences: new Sequences(standby) })
    readers[index === 0 ? 'reader' : `reader ${name}`] = standby
  }
  if (standbys.size === 0) return { reads: readsOfPrimary(db), readers, standbys: [], stop: async () => {} }
  const watches = [...standbys.values()].map(standby => standby.watch)
  const looking = await startLooking(watches)
  return {
    reads: readsOfBoth({ primary: db, standbys, observer: readerObserver }),
    readers,
    standbys: watches.map(each => () => each.state),
    stop: async () => {
      await looking.stop()
      await Promise.all(Object.values(readers).map(standby => standby.close()))
    },
  }
}

/** Resolves after the first look at each standby. */
async function startLooking(watches: readonly StandbyWatch[]): Promise<Background> {
  const lookAtAll = () => Promise.all(watches.map(({ look }) => look()))
  await lookAtAll()
  return repeat(lookAtAll, lookIntervalMs, () => {})
}

const conditions = {
  away: 'the standby cannot be reached',
  behind: 'the standby is further behind its primary than KITH_READER_MAX_LAG_SECONDS allows',
  tables: 'the standby does not have the tables of this version of kith yet',
  cell: 'the standby is one of another cell',
}

/** Logs the change of a condition once. */
function logChange(logger: Logger, { condition, isPrimary, lagSeconds }: StandbyState, hasPrimary: boolean) {
  if (condition !== 'ready') {
    const consequence = hasPrimary ? 'the primary serves all reads' : 'this reader is not ready'
    logger.warn({ condition, lag_seconds: lagSeconds }, `${conditions[condition]}: ${consequence}`)
  } else if (isPrimary)
    logger.warn('the server for reads is a primary, not a standby: it serves reads, and carries the writes too')
  else logger.info('the standby serves reads')
}
