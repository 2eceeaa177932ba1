import type pg from 'pg'
import { withConnection } from './servers/servers.ts'

/** The state of a database with Citus. `settings` are the `name=value` pairs of the database on this server. */
export type Distribution = {
  distributed: string[]
  /** The tables that are not distributed, and whether each belongs to organizations. */
  pending: { name: string; byOrganization: boolean }[]
  settings: string[]
}

type Queryable = Pick<pg.ClientBase, 'query'>

/** The table with which all tables of organizations are colocated. Every write transaction locks its row. */
const anchor = 'change_heads'

/**
 * The session options of kith that a worker needs too. They do not reach the worker, so they are set on the database:
 * Citus propagates ALTER DATABASE.
 */
const settings = { timezone: 'UTC', datestyle: 'ISO, MDY', enable_seqscan: 'off' }

/** Reads which tables of a migrated database are distributed. Undefined without Citus. */
export async function readDistribution(client: Queryable): Promise<Distribution | undefined> {
  const { rows: extensions } = await client.query(`select from pg_extension where extname = 'citus'`)
  if (extensions.length === 0) return undefined
  const { rows: tables } = await client.query<{ name: string; byOrganization: boolean; isDistributed: boolean }>(
    `select c.relname as name, a.attname is not null as "byOrganization", p.logicalrelid is not null as "isDistributed"
     from pg_class c
       left join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id' and not a.attisdropped
       left join pg_dist_partition p on p.logicalrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
     order by a.attname is null desc, c.relname <> '${anchor}', c.relname`,
  )
  const { rows: databases } = await client.query<{ settings: string[] }>(
    `select coalesce(max(s.setconfig), '{}') as settings from pg_database d
       left join pg_db_role_setting s on s.setdatabase = d.oid and s.setrole = 0
     where d.datname = current_database()`,
  )
  return {
    distributed: tables.filter(({ isDistributed }) => isDistributed).map(({ name }) => name),
    pending: tables
      .filter(({ isDistributed }) => !isDistributed)
      .map(({ name, byOrganization }) => ({ name, byOrganization })),
    settings: databases[0]!.settings.map(setting => setting.toLowerCase()),
  }
}

/** Describes the tables and settings that are left to distribute, as a clause. Undefined if none are left. */
export function describePending({ distributed, pending, settings: stored }: Distribution): string | undefined {
  const names = pending.map(({ name }) => name)
  if (distributed.length === 0) return 'the database has Citus, and no table is distributed'
  if (names.length > 0) return `the database has Citus, and these tables are not distributed: ${names.join(', ')}`
  const missing = missingSettings(stored).map(([name]) => name)
  if (missing.length > 0) return `the database has Citus, and these settings of it are missing: ${missing.join(', ')}`
  return undefined
}

/**
 * Connects to a migrated database and describes the tables and settings that are left to distribute. Undefined if none
 * are left, or without Citus.
 */
export const findPending = (url: string): Promise<string | undefined> =>
  withConnection(url, async client => {
    const distribution = await readDistribution(client)
    return distribution && describePending(distribution)
  })

/**
 * The statements that distribute the remaining tables, in order. Tables of organizations are distributed by
 * organization, all in the same way, so that one worker has all rows of an organization. The other tables are
 * replicated to every server.
 */
export function planDistribution({ pending, settings: stored }: Distribution, database: string): string[] {
  const quoted = `"${database.replaceAll('"', '""')}"`
  const statements = missingSettings(stored).map(([name, value]) => `alter database ${quoted} set ${name} = '${value}'`)
  return [...statements, ...pending.map(({ name, byOrganization }) => distribute(name, byOrganization))]
}

const missingSettings = (stored: string[]): [name: string, value: string][] =>
  Object.entries(settings).filter(([name, value]) => !stored.includes(`${name}=${value}`.toLowerCase()))

function distribute(table: string, byOrganization: boolean): string {
  if (!byOrganization) return `select create_reference_table('${table}')`
  const group = table === anchor ? 'none' : anchor
  return `select create_distributed_table('${table}', 'organization_id', colocate_with => '${group}')`
}
