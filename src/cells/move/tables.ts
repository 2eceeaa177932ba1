import pg from 'pg'

/** A table with rows of organizations. `columns` and `key`, the primary key, are in the order of the catalog. */
export type Table = { name: string; columns: string[]; key: string[] }

/** The tables that are copied when nothing changes any more. Their rows let the followers of a cell work for an organization. */
export const lastTables = ['change_heads', 'followers']

// Clients and sessions are global: they are in the first cell only. The last two belong to the move itself.
const otherTables = ['clients', 'sessions', 'sign_in_codes', 'organization_moves', 'move_captures']

const readTablesSql = `
  select c.relname as name,
    array(select a.attname::text from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns,
    array(select a.attname::text from unnest(i.indkey) with ordinality k(number, at)
      join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number order by k.at) as key
  from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary
    join pg_attribute o on o.attrelid = c.oid and o.attname = 'organization_id'
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all($1)
  order by c.relname collate "C"`

/** Reads the tables that have rows of organizations, in order of name. */
export async function readTables(client: pg.ClientBase): Promise<Table[]> {
  return (await client.query<Table>(readTablesSql, [otherTables])).rows
}

/** Qualifies a name with the schema `public` and quotes it. */
export const quoted = (name: string): string => `public.${pg.escapeIdentifier(name)}`

/** A list of quoted columns. */
export const listed = (columns: readonly string[]): string =>
  columns.map(column => pg.escapeIdentifier(column)).join(', ')
