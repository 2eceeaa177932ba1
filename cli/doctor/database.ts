import { listKeys } from '../../src/auth/keys.ts'
import type { Config } from '../../src/config.ts'
import type { Database } from '../../src/db/db.ts'
import { listMigrations, unknownMigrations } from '../../src/db/migrate.ts'
import { type Finding, ok, warning, wrong } from './finding.ts'
import {
  countStrangersSql,
  findTableSql,
  readArchiverSql,
  readClockSql,
  readMigrationsSql,
  readServerSql,
} from './sql.ts'

type Server = {
  version: string
  version_number: number
  fsync: string
  synchronous_commit: string
  full_page_writes: string
  wal_level: string
  archive_mode: string
  standby: boolean
  connections_limit: number
  connections_reserved: number
}

/** Beside its pool a service holds connections for locks and for looking after its server, and one for each of four exports. */
const besidePool = 7
const newestTried = 18

/** Version, settings and room of the server. */
export async function checkServer(db: Database, config: Config): Promise<Finding[]> {
  const [server] = (await db.query<Server>(readServerSql, [])) as [Server]
  const major = Math.floor(server.version_number / 10_000)
  const answers = `PostgreSQL ${server.version} answers`
  const version =
    major > newestTried
      ? warning('database', `${answers}, which kith has not been tried with`, `Use PostgreSQL 15 to ${newestTried}.`)
      : ok('database', answers)
  const standby = wrong('database', 'it is a standby, which takes no writes', 'Let DATABASE_URL name the primary.')
  return [
    version,
    ...(server.standby ? [standby] : []),
    ...checkDurability(server),
    ...(await checkConnections(db, server, config)),
    ...(await checkArchive(db, server)),
  ]
}

function checkDurability(server: Server): Finding[] {
  const settings = ['fsync', 'synchronous_commit', 'full_page_writes'] as const
  const off = settings.filter(name => server[name] === 'off')
  if (off.length === 0) return [ok('durability', 'what is acknowledged is on disk')]
  return off.map(name =>
    wrong(
      'durability',
      `${name} is off: a crash loses what was acknowledged, or all of it`,
      `Set ${name} = on, for the server, this database and this role.`,
    ),
  )
}

async function checkConnections(
  db: Database,
  { connections_limit, connections_reserved }: Server,
  { databaseConnections }: Config,
): Promise<Finding[]> {
  const [{ strangers }] = (await db.query<{ strangers: number }>(countStrangersSql, [])) as [{ strangers: number }]
  const free = connections_limit - connections_reserved - strangers
  const needed = databaseConnections + besidePool
  const workers = Math.floor(free / needed)
  const message = `a process of the service wants ${needed} connections, and ${free} are to be had`
  const advice = 'Lower KITH_DATABASE_CONNECTIONS, or raise max_connections.'
  if (needed > free) return [wrong('connections', message, advice)]
  return [ok('connections', `${message}: enough for ${workers === 1 ? 'one worker' : `${workers} workers`}`)]
}

type Archiver = { archived: number; failing: boolean; failed_segment: string | null }

/** Whether there is more than the last dump to restore from. */
async function checkArchive(db: Database, { wal_level, archive_mode }: Server): Promise<Finding[]> {
  const [{ archived, failing, failed_segment }] = (await db.query<Archiver>(readArchiverSql, [])) as [Archiver]
  if (archive_mode === 'off')
    return [ok('archive', `wal_level is ${wal_level}, and no WAL is archived: a restore ends where the last dump does`)]
  if (failing)
    return [
      warning(
        'archive',
        `WAL is not archived: ${failed_segment} failed last`,
        'See archive_command and the server’s log.',
      ),
    ]
  return [ok('archive', `wal_level is ${wal_level}, and ${archived} segments of WAL have been archived`)]
}

const clockWarningMs = 1_000
const clockWrongMs = 30_000

/** How far the clocks of this machine and of the server are apart. Times in the database are this machine's, ends of tokens both. */
export async function checkClock(db: Database): Promise<Finding[]> {
  const sentMs = Date.now()
  const [{ now_ms: nowMs }] = (await db.query<{ now_ms: number }>(readClockSql, [])) as [{ now_ms: number }]
  const gotMs = Date.now()
  // The server's moment lies between the two of ours.
  const apartMs = Math.max(0, sentMs - nowMs, nowMs - gotMs)
  const message = `the clocks of this machine and of the database are ${(apartMs / 1_000).toFixed(1)} s apart`
  const advice = 'Let both follow one time server (NTP).'
  if (apartMs > clockWrongMs) return [wrong('clock', message, advice)]
  return [apartMs > clockWarningMs ? warning('clock', message, advice) : ok('clock', message)]
}

const has = async (db: Database, table: string): Promise<boolean> => {
  const [row] = await db.query<{ present: boolean }>(findTableSql, [table])
  return row?.present === true
}

/** Those that have run, beside those that this version has. */
export async function checkMigrations(db: Database): Promise<Finding[]> {
  const known = await listMigrations()
  const ran = (await has(db, 'migrations')) ? await db.query<{ name: string }>(readMigrationsSql, []) : []
  const names = ran.map(({ name }) => name)
  const newer = await unknownMigrations(names)
  const pending = known.filter(name => !names.includes(name))
  if (newer.length > 0)
    return [
      wrong(
        'migrations',
        `the database has ${newer.join(', ')}, which this version does not know`,
        'Run the newer version of kith that made it.',
      ),
    ]
  if (pending.length === 0) return [ok('migrations', `the database stands at the newest, ${known.at(-1)}`)]
  return [
    warning(
      'migrations',
      `${pending.length} have not run: ${pending.join(', ')}`,
      'Run kith migrate; the start does it too.',
    ),
  ]
}

const dayMs = 86_400_000
const rotateDays = 365

/** Whether there is a key that signs, and how old it is. */
export async function checkKeys(db: Database): Promise<Finding[]> {
  const keys = (await has(db, 'signing_keys')) ? await listKeys(db) : []
  const signing = keys.find(({ signs }) => signs)
  if (!signing)
    return [warning('keys', 'there is no key that signs tokens', 'Run kith migrate; the first start makes one too.')]
  const ageDays = Math.floor((Date.now() - Date.parse(signing.created_at)) / dayMs)
  const message = `the key that signs tokens is ${ageDays} days old, and ${keys.length - 1} older ones verify`
  if (ageDays > rotateDays) return [warning('keys', message, 'Run kith keys rotate: no token in use is refused.')]
  return [ok('keys', message)]
}
