import { statement } from '../db/db.ts'

const exists = 'to_regnamespace(quote_ident(v.schema_name)) is not null'
/** Whether the role that got the rights in this database still exists. */
const hasLogin = `exists (
     select from pg_roles r join pg_database d on d.datname = current_database()
     where r.rolname = v.login and r.oid = v.login_oid and d.oid = v.database_oid
   )`

/** The views of an organization. $2: the schema, or null for all. */
export const findViewsSql = statement(
  'find_sql_views',
  `select v.schema_name, v.login, v.is_own_login, v.role, v.created_at, v.retired, ${hasLogin} as has_login,
     ${exists} and v.version = h.schema_version as is_current
   from sql_views v left join change_heads h on h.organization_id = $1
   where v.organization_id = $1 and ($2::text is null or v.schema_name = $2)
   order by v.schema_name`,
)

/** The views with outdated definitions, and those with schemas to drop. With $1, all views. */
export const findOutdatedViewsSql = statement(
  'find_outdated_sql_views',
  `select v.organization_id, v.schema_name, x.is_outdated, cardinality(v.retired) > 0 as has_retired
   from sql_views v join change_heads h on h.organization_id = v.organization_id
     join organizations o on o.id = v.organization_id
     cross join lateral (select v.version is distinct from h.schema_version or not ${exists} as is_outdated) x
   where o.deleted_at is null and ($1::boolean or x.is_outdated or cardinality(v.retired) > 0)`,
)

/** $2: schema. Locks the views for their renewal. Returns no row if another process renews them. */
export const lockViewsSql = statement(
  'lock_sql_views',
  `select v.login, v.role, v.digest, v.retired, ${hasLogin} as has_login, ${exists} as exists
   from sql_views v where v.organization_id = $1 and v.schema_name = $2 for update skip locked`,
)

/** $2: schema, $3: version of the definitions, $4: digest, $5: schemas to drop. */
export const updateViewsSql = statement(
  'update_sql_views',
  `update sql_views set version = $3, digest = $4, retired = $5 where organization_id = $1 and schema_name = $2`,
)

/** $2: schema. Clears the list of its dropped earlier schemas. */
export const clearRetiredSql = statement(
  'clear_retired_sql_views',
  `update sql_views set retired = '{}' where organization_id = $1 and schema_name = $2`,
)

/** $2: schema. Waits for a renewal. Returns the schemas with earlier views. */
export const deleteViewsSql = statement(
  'delete_sql_views',
  'delete from sql_views where organization_id = $1 and schema_name = $2 returning retired',
)

/** $1: organization key. Also finds an organization that is being deleted. */
export const findOrganizationOfViewsSql = statement(
  'find_organization_of_sql_views',
  'select o.id from organizations o where o.key = $1',
)

/** $1: schema. Returns the names of its views. */
export const listViewNamesSql = statement(
  'list_sql_view_names',
  `select c.relname as name from pg_class c where c.relnamespace = to_regnamespace(quote_ident($1)) and c.relkind = 'v'`,
)

/** $1: login. Ends its sessions, if the service has the right to. */
export const endSessionsSql = statement(
  'end_sessions_of_login',
  `select pg_terminate_backend(a.pid) from pg_stat_activity a
   where a.usename = $1 and a.datname = current_database() and pg_has_role(a.usesysid, 'usage')`,
)
