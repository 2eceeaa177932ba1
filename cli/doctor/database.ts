import { listKeys } from '../../src/auth/keys.ts'
import type { Config } from '../../src/config.ts'
import type { Database } from '../../src/db/db.ts'
import { listMigrations, unknownMigrations } from '../../src/db/migrate.ts'
import { type Finding, ok, warning, wrong } from './finding.ts'
import { count_strangers, find_table, read_archiver, read_clock, read_migrations, read_server } from './sql.ts'

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
const beside_pool = 7
const newest_tried = 18

/** Version, settings and room of the server. */
export async function checkServer(db: Database, config: Config): Promise<Finding[]> {
  const [server] = (await db.query<Server>(read_server, [])) as [Server]
  const major = Math.floor(server.version_number / 10_000)
  const answers = `PostgreSQL ${server.version} answers`
  const version =
    major > newest_tried
      ? warning('database', `${answers}, which kith has not been tried with`, `Use PostgreSQL 15 to ${newest_tried}.`)
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
  { database_connections }: Config,
): Promise<Finding[]> {
  const [{ strangers }] = (await db.query<{ strangers: number }>(count_strangers, [])) as [{ strangers: number }]
  const free = connections_limit - connections_reserved - strangers
  const needed = database_connections + beside_pool
  const workers = Math.floor(free / needed)
  const message = `a process of the service wants ${needed} connections, and ${free} are to be had`
  const advice = 'Lower KITH_DATABASE_CONNECTIONS, or raise max_connections.'
  if (needed > free) return [wrong('connections', message, advice)]
  return [ok('connections', `${message}: enough for ${workers === 1 ? 'one worker' : `${workers} workers`}`)]
}

type Archiver = { archived: number; failing: boolean; failed_segment: string | null }

/** Whether there is more than the last dump to restore from. */
async function checkArchive(db: Database, { wal_level, archive_mode }: Server): Promise<Finding[]> {
  const [{ archived, failing, failed_segment }] = (await db.query<Archiver>(read_archiver, [])) as [Archiver]
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

const clock_warning_ms = 1_000
const clock_wrong_ms = 30_000

/** How far the clocks of this machine and of the server are apart. Times in the database are this machine's, ends of tokens both. */
export async function checkClock(db: Database): Promise<Finding[]> {
  const sent_ms = Date.now()
  const [{ now_ms }] = (await db.query<{ now_ms: number }>(read_clock, [])) as [{ now_ms: number }]
  const got_ms = Date.now()
  // The server's moment lies between the two of ours.
  const apart_ms = Math.max(0, sent_ms - now_ms, now_ms - got_ms)
  const message = `the clocks of this machine and of the database are ${(apart_ms / 1_000).toFixed(1)} s apart`
  const advice = 'Let both follow one time server (NTP).'
  if (apart_ms > clock_wrong_ms) return [wrong('clock', message, advice)]
  return [apart_ms > clock_warning_ms ? warning('clock', message, advice) : ok('clock', message)]
}

const has = async (db: Database, table: string): Promise<boolean> => {
  const [row] = await db.query<{ present: boolean }>(find_table, [table])
  return row?.present === true
}

/** Those that have run, beside those that this version has. */
export async function checkMigrations(db: Database): Promise<Finding[]> {
  const known = await listMigrations()
  const ran = (await has(db, 'migrations')) ? await db.query<{ name: string }>(read_migrations, []) : []
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

const day_ms = 86_400_000
const rotate_days = 365

/** Whether there is a key that signs, and how old it is. */
export async function checkKeys(db: Database): Promise<Finding[]> {
  const keys = (await has(db, 'signing_keys')) ? await listKeys(db) : []
  const signing = keys.find(({ signs }) => signs)
  if (!signing)
    return [warning('keys', 'there is no key that signs tokens', 'Run kith migrate; the first start makes one too.')]
  const age_days = Math.floor((Date.now() - Date.parse(signing.created_at)) / day_ms)
  const message = `the key that signs tokens is ${age_days} days old, and ${keys.length - 1} older ones verify`
  if (age_days > rotate_days) return [warning('keys', message, 'Run kith keys rotate: no token in use is refused.')]
  return [ok('keys', message)]
}
