import pg from 'pg'
import { Servers } from '../../src/db/servers/servers.ts'
import type { Sequence } from './container.ts'

/** A table of the catalog. `bytes` is its approximate size on disk, without indexes. */
export type Table = { name: string; columns: string[]; bytes: number }

// Unlogged tables are left out: a crash may lose their rows, which are rate limit counters. The table of migrations is
// left out too, because the migrations create it.
const tables = `
  select c.relname as name, pg_table_size(c.oid)::float8 as bytes,
    array(select a.attname::text from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum) as columns
  from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relpersistence = 'p' and c.relname <> 'migrations'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
  order by c.relname collate "C"`

const sequences = `
  select c.relname as name from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'S' and c.relpersistence = 'p'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and (d.deptype = 'e' or d.refobjid = to_regclass('public.migrations')))
  order by c.relname collate "C"`

// PostgreSQL writes and reads values as text. These settings make the text independent of the settings of the server
// and the role. Timeouts of a role or a database would abort a long COPY. Only PostgreSQL 17 and newer have
// `transaction_timeout`. The view spells DateStyle, IntervalStyle and TimeZone in mixed case.
const settings = `
  select set_config(name, $1::jsonb ->> lower(name), false) from pg_settings
  where lower(name) in (select jsonb_object_keys($1::jsonb))`
const sessionSettings = {
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
  client_encoding: 'UTF8',
  datestyle: 'ISO, YMD',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '3',
}

/** Runs `work` on a new connection without statement timeouts. */
export async function withConnection<T>(
  url: string,
  name: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = await new Servers(url, { application_name: name, keepAlive: true }).connect()
  try {
    await client.query(settings, [JSON.stringify(sessionSettings)])
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/** Runs `work`. If the signal aborts, the connection is closed even while a statement runs, and the reason is thrown. */
export async function untilAborted<T>(client: pg.Client, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const closeConnection = () => void client.end().catch(() => {})
  signal.addEventListener('abort', closeConnection, { once: true })
  try {
    signal.throwIfAborted()
    return await work()
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', closeConnection)
  }
}

/** Qualifies a name with the schema `public` and quotes it. */
export const quoted = (name: string): string => `public.${pg.escapeIdentifier(name)}`

/** Reads all tables that a backup contains, in order of name. */
export async function readTables(client: pg.Client): Promise<Table[]> {
  return (await client.query<Table>(tables)).rows
}

/** Reads the names of the migrations that have run, in order. Without a migrations table the list is empty. */
export async function readMigrations(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query(`select to_regclass('public.migrations') is not null as present`)
  if (!rows[0].present) return []
  const ran = await client.query<{ name: string }>('select name from public.migrations order by id')
  return ran.rows.map(({ name }) => name)
}

/** Reads the positions of the sequences. They are read after the tables, so no sequence is behind a stored number. */
export async function readSequences(client: pg.Client): Promise<Sequence[]> {
  const found: Sequence[] = []
  for (const { name } of (await client.query<{ name: string }>(sequences)).rows) {
    const { rows } = await client.query(`select last_value::text, is_called from ${quoted(name)}`)
    found.push({ name, ...rows[0] })
  }
  return found
}

/** Returns the names of the tables that have rows. */
export async function tablesWithRows(client: pg.Client, names: string[]): Promise<string[]> {
  const found: string[] = []
  for (const name of names) {
    const { rows } = await client.query(`select exists (select from ${quoted(name)}) as has_rows`)
    if (rows[0].has_rows) found.push(name)
  }
  return found
}
