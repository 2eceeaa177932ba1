import { listKeys } from '../../auth/keys/keys.ts'
import type { Database } from '../../db/db.ts'
import { describePending, readDistribution } from '../../db/distribution.ts'
import { adviceToGrant, isOfBeta, listMigrations, unknownMigrations } from '../../db/migrate.ts'
import { termsOf } from '../../entities/indexes/index-keys.ts'
import { listFailingFollowers } from '../../followers/followers.ts'
import type { Config } from '../../process/config.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { listFailingWebhooks } from '../../webhooks/deliveries.ts'
import { readLastBackup } from '../backups.ts'
import { type Finding, type Found, type OrganizationFinding, ok, warning, wrong } from './finding.ts'
import {
  countForeignConnectionsSql,
  findTableSql,
  readArchiverSql,
  readClockSql,
  readIndexSampleSql,
  readMigrationsSql,
  readMissingTermsSql,
  readOldestTransactionSql,
  readRightsSql,
  readServerSql,
  readTermSampleSql,
  readValueSampleSql,
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
  encoding: string
  synchronous_standby_names: string
  /** The number of standbys that stream from the server. */
  standbys: number
  connections_limit: number
  connections_reserved: number
}

/**
 * The connections of a process outside its pool: for locks, for liveness probes, and one for each of up to four
 * exports.
 */
const nonPoolConnections = 7
const newestTestedMajor = 18

/** Checks version, settings, free connections and WAL archive of the server. */
export async function checkServer(db: Database, config: Config): Promise<Found> {
  const [server] = (await db.query<Server>(readServerSql, [])) as [Server]
  const major = Math.floor(server.version_number / 10_000)
  const message = `PostgreSQL ${server.version} responds`
  const version =
    major > newestTestedMajor
      ? warning(
          'database',
          `${message}, but kith is not tested with this version`,
          `Use PostgreSQL 15 to ${newestTestedMajor}.`,
        )
      : ok('database', message)
  const standby = wrong('database', 'the server is a read-only standby', 'Set DATABASE_URL to the primary.')
  const encoding = wrong(
    'database',
    `the encoding of the database is ${server.encoding}, and kith needs UTF8`,
    'Make a database with UTF8 (encoding UTF8, template template0), and restore a backup into it.',
  )
  return [
    version,
    server.standby ? standby : [],
    server.encoding === 'UTF8' ? [] : encoding,
    checkDurability(server),
    await checkConnections(db, server, config),
    await checkArchive(db, server),
  ].flat()
}

function checkDurability(server: Server): Found {
  const failover = checkFailover(server)
  const settings = ['fsync', 'synchronous_commit', 'full_page_writes'] as const
  const off = settings.filter(name => server[name] === 'off')
  if (off.length === 0 && failover.length === 0) return ok('durability', 'acknowledged writes are on disk')
  const onCrash = off.map(name =>
    wrong(
      'durability',
      `${name} is off: a crash can lose acknowledged writes or the whole database`,
      `Set ${name} = on, for the server, this database and this role.`,
    ),
  )
  return [...onCrash, ...failover]
}

/** Checks whether a standby has all acknowledged writes, so that its promotion loses none. */
function checkFailover({ standbys, synchronous_commit, synchronous_standby_names: names }: Server): Finding[] {
  const findings: Finding[] = []
  if (standbys > 0 && names === '')
    findings.push(
      warning(
        'durability',
        `synchronous_standby_names is empty, and ${standbys === 1 ? 'one standby streams' : `${standbys} standbys stream`}: a failover can lose acknowledged writes`,
        'Set synchronous_standby_names, or synchronous_mode of Patroni (docs/more-servers.md, Failover).',
      ),
    )
  if (synchronous_commit === 'local' && (standbys > 0 || names !== ''))
    findings.push(
      warning(
        'durability',
        'synchronous_commit is local: a failover can lose acknowledged writes',
        'Set synchronous_commit = on, for the server, this database and this role.',
      ),
    )
  return findings
}

async function checkConnections(
  db: Database,
  { connections_limit, connections_reserved }: Server,
  { databaseConnections }: Config,
): Promise<Found> {
  const [{ foreign_count: foreignCount }] = (await db.query<{ foreign_count: number }>(
    countForeignConnectionsSql,
    [],
  )) as [{ foreign_count: number }]
  const free = connections_limit - connections_reserved - foreignCount
  const needed = databaseConnections + nonPoolConnections
  const workers = Math.floor(free / needed)
  const message = `a process of the service needs ${needed} connections, and ${free} are available`
  const advice = 'Lower KITH_DATABASE_CONNECTIONS, or raise max_connections.'
  if (needed > free) return wrong('connections', message, advice)
  return ok('connections', `${message}: enough for ${workers === 1 ? 'one worker' : `${workers} workers`}`)
}

type Archiver = { archived: number; failing: boolean; failed_segment: string | null }

/** Checks whether WAL is archived, so that a restore can go beyond the last dump. */
async function checkArchive(db: Database, { wal_level, archive_mode }: Server): Promise<Found> {
  const [{ archived, failing, failed_segment }] = (await db.query<Archiver>(readArchiverSql, [])) as [Archiver]
  if (archive_mode === 'off')
    return ok('archive', `wal_level is ${wal_level}, and no WAL is archived: a restore ends at the last dump`)
  if (failing)
    return warning(
      'archive',
      `archiving of WAL fails, last for ${failed_segment}`,
      'See archive_command and the server’s log.',
    )
  return ok('archive', `wal_level is ${wal_level}, and ${archived} segments of WAL have been archived`)
}

const clockWarningMs = 1_000
const clockWrongMs = 30_000

/**
 * Compares the clocks of this machine and of the server. Stored times come from this machine. The expiry of tokens
 * depends on both.
 */
export async function checkClock(db: Database): Promise<Found> {
  const sentMs = Date.now()
  const [{ now_ms: nowMs }] = (await db.query<{ now_ms: number }>(readClockSql, [])) as [{ now_ms: number }]
  const receivedMs = Date.now()
  // The server read its clock between these two times.
  const apartMs = Math.max(0, sentMs - nowMs, nowMs - receivedMs)
  const message = `the clocks of this machine and of the database are ${(apartMs / 1_000).toFixed(1)} s apart`
  const advice = 'Synchronize both with one time server (NTP).'
  if (apartMs > clockWrongMs) return wrong('clock', message, advice)
  return apartMs > clockWarningMs ? warning('clock', message, advice) : ok('clock', message)
}

/** Whether the database has a table with this name. */
export const hasTable = async (db: Database, table: string): Promise<boolean> => {
  const [row] = await db.query<{ present: boolean }>(findTableSql, [table])
  return row?.present === true
}

/** Compares the migrations that have run with those of this version. */
export async function checkMigrations(db: Database): Promise<Found> {
  const known = await listMigrations()
  const ran = (await hasTable(db, 'migrations')) ? await db.query<{ name: string }>(readMigrationsSql, []) : []
  const names = ran.map(({ name }) => name)
  const newer = await unknownMigrations(names)
  const pending = known.filter(name => !names.includes(name))
  if (isOfBeta(names))
    return wrong(
      'migrations',
      'an earlier beta of kith made the database, and this version does not read its data',
      'Carry every organization over by export and import, as docs/scale.md describes.',
    )
  if (newer.length > 0)
    return wrong(
      'migrations',
      `the database has ${newer.join(', ')}, which this version does not know`,
      'Run the newer version of kith that migrated the database.',
    )
  if (ran.length > 0 && !(await hasTable(db, 'public.organizations')))
    return wrong(
      'migrations',
      'the tables of kith are not in the schema public, so a backup would have none of them',
      'Move them, as docs/backups.md describes (What a backup holds).',
    )
  const rights = await checkRights(db, pending.length > 0)
  if (rights.length > 0) return rights
  if (pending.length === 0) return ok('migrations', `the database has every migration, up to ${known.at(-1)}`)
  return warning(
    'migrations',
    `not all have run, and these are missing: ${pending.join(', ')}`,
    'Run kith migrate. The start of the service runs them too.',
  )
}

/** Checks that the role may write, and may run pending migrations. */
async function checkRights(db: Database, migrates: boolean): Promise<Finding[]> {
  type Rights = { role: string; may_create: boolean; may_write: boolean }
  const [{ role, may_create, may_write }] = (await db.query<Rights>(readRightsSql, [])) as [Rights]
  if (migrates && !may_create)
    return [wrong('migrations', `the role ${role} may not create tables`, adviceToGrant(role))]
  if (may_write) return []
  const advice = 'Set DATABASE_URL to the role that owns the tables.'
  return [wrong('migrations', `the role ${role} may not write the tables of kith`, advice)]
}

const dayMs = 86_400_000
const rotateDays = 365

/** Checks that a signing key exists, and its age. */
export async function checkKeys(db: Database): Promise<Found> {
  const keys = (await hasTable(db, 'signing_keys')) ? await listKeys(db) : []
  const signing = keys.find(({ state }) => state === 'signs')
  if (!signing)
    return warning(
      'keys',
      'there is no signing key',
      'Run kith migrate. The first start of the service creates one too.',
    )
  const ageDays = Math.floor((Date.now() - Date.parse(signing.created_at)) / dayMs)
  const message = `days since the signing key was made: ${ageDays}, older keys that verify tokens: ${keys.length - 1}`
  if (ageDays > rotateDays) return warning('keys', message, 'Run kith keys rotate. Tokens in use stay valid.')
  return ok('keys', message)
}

const backupWarningDays = 2

/** Checks the age of the last `kith backup`. An external server may have other backups that kith does not know. */
export async function checkBackup(db: Database, { databaseUrl }: Pick<Config, 'databaseUrl'>): Promise<Found> {
  const last = (await hasTable(db, 'backups')) ? await readLastBackup(db) : null
  const advice = 'Run kith backup every day, and keep the file on another machine.'
  if (last === null) {
    const message = 'kith backup has written no backup of this database'
    return databaseUrl === undefined ? warning('backup', message, advice) : ok('backup', message)
  }
  const message = `the last kith backup is of ${new Date(last * 1_000).toISOString()}`
  const isOld = Date.now() - last * 1_000 > backupWarningDays * dayMs
  return isOld
    ? warning('backup', `${message}, more than ${backupWarningDays} days ago`, advice)
    : ok('backup', message)
}

const oldTransactionSeconds = 600

/** Names the oldest transaction. An old transaction keeps vacuum from removing dead rows. */
export async function checkTransactions(db: Database): Promise<Found> {
  const [oldest] = await db.query<{ holder: string; seconds: number }>(readOldestTransactionSql, [])
  if (!oldest || oldest.seconds < oldTransactionSeconds)
    return ok('transactions', 'no transaction is older than 10 minutes')
  return warning(
    'transactions',
    `${oldest.holder} has had a transaction open for ${Math.floor(oldest.seconds / 60)} minutes: vacuum removes no dead row that it may see`,
    'Wait if it is a backup or an export. Else end it with pg_terminate_backend, or rollback prepared.',
  )
}

/** Names the followers of the change log whose work fails. */
export async function checkFollowers(db: Database): Promise<Found> {
  const failing = (await hasTable(db, 'followers')) ? await listFailingFollowers(db) : []
  if (failing.length === 0) return ok('followers', 'no follower of the change log fails')
  return failing.map(({ organization, name, id, sequence, failures, failure, not_before }) =>
    warning(
      'followers',
      `${id === 0 ? name : `${name} ${id}`} of ${organization} fails after change ${sequence}: ${failure} (failures: ${failures})`,
      `kith retries ${not_before === null ? 'at once' : `at ${not_before}`}. The log of the service has the error, with "task":"follow".`,
      organization,
    ),
  )
}

/** With Citus, checks that all tables are distributed and the settings are stored. */
export async function checkDistribution(db: Database): Promise<Found> {
  const client = await db.connect()
  const distribution = await readDistribution(client).finally(() => client.end())
  if (!distribution) return []
  const message = describePending(distribution)
  if (message === undefined) return ok('cluster', 'Citus distributes every table')
  return wrong('cluster', message, 'Stop the service, and run kith distribute. It does what is left to do.')
}

/** Names the webhooks that fail, or that kith has disabled. */
export async function checkWebhooks(db: Database): Promise<Found> {
  const failing = (await hasTable(db, 'webhooks')) ? await listFailingWebhooks(db) : []
  if (failing.length === 0) return ok('webhooks', 'no webhook fails')
  return failing.map(({ organization, id, url, disabled_reason, disabled_at, failing_since }) => {
    const name = `webhook ${id} of ${organization} (${URL.parse(url)?.host})`
    if (disabled_reason === null)
      return warning(
        'webhooks',
        `${name} has delivered nothing since ${failing_since}`,
        `GET /v1/webhooks/${id}/deliveries shows the responses.`,
        organization,
      )
    const reason = disabled_reason === 'gone' ? 'its receiver responded with 410' : 'it delivered nothing for five days'
    return warning(
      'webhooks',
      `${name} was disabled at ${disabled_at}: ${reason}`,
      'When the receiver works again, PATCH the webhook with {"active": true}, or delete it.',
      organization,
    )
  })
}

type Index = {
  organization_id: number
  organization: string
  index_id: number
  stack_id: number
  key: string
  type: AttributeType
  cardinality: 'one' | 'many'
}
type Stored = { id: string; value: unknown }

/** Compares a sample of the terms of ready indexes with their rows, because no other check compares the two. */
export async function checkIndexes(db: Database): Promise<Found> {
  const indexes = (await hasTable(db, 'attributes')) ? await db.query<Index>(readIndexSampleSql, []) : []
  const findings: OrganizationFinding[] = []
  let compared = 0
  for (const index of indexes) {
    const { organization_id, index_id, stack_id, key } = index
    const stored = await db.query<Stored>(readValueSampleSql, [organization_id, stack_id, key])
    const expected = stored.flatMap(({ id, value }) => [...termsOf(index, value)].map(term => ({ value: term, id })))
    const lacking = await db.query<{ id: string }>(readMissingTermsSql, [
      organization_id,
      index_id,
      JSON.stringify(expected),
    ])
    const terms = await db.query<Stored & { term: string }>(readTermSampleSql, [
      organization_id,
      index_id,
      stack_id,
      key,
    ])
    const stale = terms.filter(({ term, value }) => !termsOf(index, value).has(term))
    compared += expected.length + terms.length
    const named = [...lacking, ...stale].map(({ id }) => id)
    if (named.length > 0)
      findings.push(
        wrong(
          'indexes',
          `the index of the attribute ${index.key} of ${index.organization} differs from the values of ${named.slice(0, 3).join(', ')}: filters are wrong`,
          'PATCH the attribute with {"indexed": false}, and then with {"indexed": true}: that fills its index anew.',
          index.organization,
        ),
      )
  }
  return findings.length > 0
    ? findings
    : [
        ok(
          'indexes',
          `the values of a sample are those of their rows (indexes: ${indexes.length}, values: ${compared})`,
        ),
      ]
}
