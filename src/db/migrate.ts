import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { version } from '../process/version.ts'
import { withConnection } from './servers/servers.ts'

const directory = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** The names of this version's migrations, in order. */
export async function listMigrations(): Promise<string[]> {
  const files = (await readdir(directory)).filter(file => /^\d+_.*\.sql$/.test(file))
  return files.map(file => file.replace(/\.sql$/, '')).sort()
}

/**
 * The migrations of the database that this version does not have. They come from a newer version, or from a beta:
 * {@link isOfBeta}.
 */
export async function unknownMigrations(ran: string[]): Promise<string[]> {
  const known = new Set(await listMigrations())
  return ran.filter(name => !known.has(name))
}

/** The first migration of 1.0.0-beta.1 and later checkouts. The first release has new migrations (decision 58). */
const firstMigrationOfBeta = '0001_house'

/** Whether a beta made a database or backup with these migrations. No migration leads from a beta to this version. */
export const isOfBeta = (ran: string[]): boolean => ran.includes(firstMigrationOfBeta)

/** Throws if a beta made the database with these migrations. */
export function throwIfOfBeta(ran: string[]): void {
  if (isOfBeta(ran))
    throw new Error(
      'An earlier beta of kith made the database, and this version does not read its data: export every organization with that ' +
        'beta (kith schema pull, kith export), start this version with an empty database or data folder, and import there ' +
        '(kith schema push, kith import), as docs/scale.md describes.',
    )
}

/**
 * Brings the database to the newest migration and returns the names of the migrations that ran. Migrations are forward
 * only: plain SQL from `migrations/`. All pending migrations run in one transaction, and an advisory lock serializes
 * servers that start together. `count` is the maximum number of pending migrations to run. Throws if a newer version
 * has migrated the database, if a beta made it, or if migrations are pending and the server is read-only or its role
 * may not create tables.
 */
export async function migrate(url: string, count = Number.POSITIVE_INFINITY): Promise<string[]> {
  if ((await findMissing(url, runNewer)).length === 0) return []
  try {
    return await runMigrations(url, count)
  } catch (cause) {
    // The error of the migration runner has no code.
    const message = await explainRefusal(url).catch(() => undefined)
    if (message === undefined) throw cause
    throw new Error(message, { cause })
  }
}

/** The migrations that {@link migrate} would run, with their SQL. Changes nothing. Throws as {@link migrate} does. */
export async function readPendingMigrations(url: string): Promise<{ name: string; sql: string }[]> {
  const pending = await findMissing(url, runNewer)
  return Promise.all(pending.map(async name => ({ name, sql: await readFile(`${directory}${name}.sql`, 'utf8') })))
}

const runNewer = 'Run the newer version, or restore a backup from before the upgrade.'

/** The migrations that a database lacks. Throws with `advice` if a newer version has migrated the database. */
async function findMissing(url: string, advice: string): Promise<string[]> {
  const ran = await readMigrations(url)
  throwIfOfBeta(ran)
  const unknown = await unknownMigrations(ran)
  if (unknown.length > 0)
    throw new Error(
      `A newer version of kith has migrated the database: kith ${version} does not know ${unknown.join(', ')}. ${advice}`,
    )
  return (await listMigrations()).filter(name => !ran.includes(name))
}

/**
 * Throws unless the database is at the migrations of this version. Changes nothing, so the database may be a standby.
 */
export async function requireMigrated(url: string): Promise<void> {
  const missing = await findMissing(url, 'Run the newer version.')
  if (missing.length > 0)
    throw new Error(
      `The standby lacks tables of kith ${version} (${missing[0]}${missing.length > 1 ? ` and ${missing.length - 1} more migrations` : ''}), and a reader migrates nothing. Migrate the primary first: start a process of this version with the role primary.`,
    )
}

/** The advice how to let a role create tables. `role` is quoted for SQL. */
export const adviceToGrant = (role: string): string =>
  `Run, as the owner of the database: grant usage, create on schema public to ${role}`

/** The reason why migrations cannot run in a database. Undefined if they can. */
const explainRefusal = (url: string): Promise<string | undefined> =>
  withConnection(url, async client => {
    const { rows } = await client.query(
      `select current_setting('transaction_read_only')::boolean as read_only, has_schema_privilege('public', 'create') as may_create,
              quote_ident(current_user) as role`,
    )
    const { read_only, may_create, role } = rows[0]
    if (read_only)
      return 'The database is read-only (a standby), and its tables are not at this version. Migrate the primary first.'
    if (!may_create) return `The role ${role} may not create tables. ${adviceToGrant(role)}`
    return undefined
  })

/**
 * Timeouts of a role or a database would abort a migration of large tables. Some versions of PostgreSQL lack some of
 * them.
 */
const liftTimeouts = `
  select set_config(name, '0', false) from pg_settings
  where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

/**
 * PostgreSQL would create the tables in a schema with the role's name if it exists, but a backup contains those of
 * `public`. Earlier versions created the tables in that schema, and their migrations continue there.
 */
const choosePublic = `
  select set_config('search_path', 'public', false)
  where to_regclass('public.migrations') is null or to_regclass('public.organizations') is not null`

/** Throws unless a new database has the encoding UTF8. SQL_ASCII, the default for the locale C, counts bytes. */
async function refuseOtherEncodings(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `select current_setting('server_encoding') as encoding, quote_ident(current_database()) as name
     where current_setting('server_encoding') <> 'UTF8' and to_regclass('organizations') is null`,
  )
  if (rows.length > 0)
    throw new Error(
      `The database ${rows[0].name} has the encoding ${rows[0].encoding}, and kith needs UTF8. Make it anew: create database ${rows[0].name} encoding 'UTF8' template template0`,
    )
}

async function runMigrations(url: string, count: number): Promise<string[]> {
  // A start without pending migrations saves 60 ms by this import.
  const { runner } = await import('node-pg-migrate')
  const ran = await withConnection(url, async client => {
    await refuseOtherEncodings(client)
    await client.query(liftTimeouts)
    await client.query(choosePublic)
    await dropViewsWithin(client)
    return runner({
      dbClient: client,
      dir: directory,
      ignorePattern: 'schema\\.sql',
      direction: 'up',
      count,
      migrationsTable: 'migrations',
      advisoryLockMode: 'wait',
      singleTransaction: true,
      log: () => {},
    })
  })
  return ran.map(migration => migration.name)
}

/**
 * Begins the transaction of the migrations, and drops the views for SQL in it, because PostgreSQL does not change a
 * column that a view reads. The service creates them again. A BEGIN within a transaction does nothing, so the COMMIT or
 * ROLLBACK of the runner ends this one.
 */
async function dropViewsWithin(client: pg.Client): Promise<void> {
  const { rows: tables } = await client.query(`select to_regclass('public.sql_views') is not null as present`)
  if (!tables[0].present) return
  await client.query('begin')
  // The lock of the row excludes processes that renew the views.
  const { rows } = await client.query<{ schema_name: string; retired: string[] }>(
    'select s.schema_name, s.retired from public.sql_views s for update',
  )
  for (const { schema_name, retired } of rows)
    for (const name of [schema_name, ...retired])
      await client.query(`drop schema if exists ${client.escapeIdentifier(name)} cascade`)
  await client.query(`update public.sql_views set retired = '{}'`)
}

const readMigrations = (url: string): Promise<string[]> =>
  withConnection(url, async client => {
    const { rows: tables } = await client.query(`select to_regclass('public.migrations') is not null as present`)
    if (!tables[0].present) return []
    const { rows } = await client.query<{ name: string }>('select name from public.migrations order by id')
    return rows.map(({ name }) => name)
  })
