import pg from 'pg'
import type { Sequence } from './container.ts'

/** A table as the catalog has it. `bytes` is about what it takes on the disk, without its indexes. */
export type Table = { name: string; columns: string[]; bytes: number }

// Unlogged tables hold what a crash may forget: counters of rate limits. The migrations make their own table.
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

// Values are written and read as text: the same text whatever the server or its role is set to. Timeouts that a role or a
// database may be set to would end a long COPY; of `transaction_timeout` only 17 and newer know.
const settings = `
  select set_config(name, $1::jsonb ->> name, false) from pg_settings where name in (select jsonb_object_keys($1::jsonb))`
const setTo = {
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

/** Runs `work` on a connection of its own whose statements may take any time. */
export async function withConnection<T>(
  url: string,
  name: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: name, keepAlive: true })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(settings, [JSON.stringify(setTo)])
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/** Runs `work`; when the signal aborts meanwhile, the connection ends, whatever it waits for, and the signal's reason is thrown. */
export async function untilAborted<T>(client: pg.Client, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const giveUp = () => void client.end().catch(() => {})
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    signal.throwIfAborted()
    return await work()
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** A name of the schema `public`, quoted. */
export const quoted = (name: string): string => `public.${pg.escapeIdentifier(name)}`

/** All tables whose rows are kept, in order of name. */
export async function readTables(client: pg.Client): Promise<Table[]> {
  return (await client.query<Table>(tables)).rows
}

/** The migrations that have run, in order; none where there is not even their table. */
export async function readMigrations(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query(`select to_regclass('public.migrations') is not null as present`)
  if (!rows[0].present) return []
  const ran = await client.query<{ name: string }>('select name from public.migrations order by id')
  return ran.rows.map(({ name }) => name)
}

/** Where the sequences stand. They are read after the tables, so none is behind a number that a table holds. */
export async function readSequences(client: pg.Client): Promise<Sequence[]> {
  const found: Sequence[] = []
  for (const { name } of (await client.query<{ name: string }>(sequences)).rows) {
    const { rows } = await client.query(`select last_value::text, is_called from ${quoted(name)}`)
    found.push({ name, ...rows[0] })
  }
  return found
}

/** Of these tables the ones that have rows. */
export async function tablesWithRows(client: pg.Client, names: string[]): Promise<string[]> {
  const found: string[] = []
  for (const name of names) {
    const { rows } = await client.query(`select exists (select from ${quoted(name)}) as has_rows`)
    if (rows[0].has_rows) found.push(name)
  }
  return found
}
