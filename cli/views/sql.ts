import { statement } from '../../src/db/db.ts'

/** $2: schema, $3: login, $4: whether kith made the login, $5: role of kith or null. Stores nothing if the organization is being deleted. */
export const insertViewsSql = statement(
  'insert_sql_views',
  `insert into sql_views (organization_id, schema_name, login, login_oid, database_oid, is_own_login, role)
   select h.organization_id, $2, r.rolname, r.oid, d.oid, $4, $5
   from change_heads h join organizations o on o.id = h.organization_id cross join pg_roles r
     cross join pg_database d
   where h.organization_id = $1 and o.deleted_at is null and r.rolname = $3 and d.datname = current_database()
   for share of o returning schema_name`,
)

/** The rights of the service in the database, and whether it has Citus. $1: login, $2: schema. */
export const readServerSql = statement(
  'read_sql_views_server',
  `select current_database() as database, current_user as owner, exists (select from pg_extension where extname = 'citus') as has_citus,
     pg_has_role(d.datdba, 'usage') as owns_database, u.rolsuper as is_superuser, coalesce(pg_has_role(n.nspowner, 'usage'), false) as owns_public,
     exists (select from pg_roles where rolname = $1) as has_login, to_regnamespace(quote_ident($2)) is not null as has_schema
   from pg_database d join pg_roles u on u.rolname = current_user left join pg_namespace n on n.nspname = 'public'
   where d.datname = current_database()`,
)

/** The roles with explicit grants in the schema public. They keep its use when it is closed to all others. */
export const listReadersOfPublicSql = statement(
  'list_readers_of_public',
  `select distinct r.rolname as name
   from pg_shdepend s join pg_database d on d.oid = s.dbid and d.datname = current_database() join pg_roles r on r.oid = s.refobjid
     left join pg_class c on s.classid = 'pg_class'::regclass and c.oid = s.objid
     left join pg_proc f on s.classid = 'pg_proc'::regclass and f.oid = s.objid
   where s.refclassid = 'pg_authid'::regclass and s.deptype in ('a', 'o')
     and coalesce(c.relnamespace, f.pronamespace) = to_regnamespace('public')`,
)

/** $1: login, $2: schema of the views. Lists everything else that the login can reach, in words. */
export const listReachOfLoginSql = statement(
  'list_reach_of_login',
  `with login as (select r.* from pg_roles r where r.rolname = $1)
   select x.what from login l cross join lateral (
     select 'the attribute ' || p.name as what
     from unnest(array['superuser', 'createdb', 'createrole', 'replication', 'bypassrls'],
       array[l.rolsuper, l.rolcreatedb, l.rolcreaterole, l.rolreplication, l.rolbypassrls]) as p(name, has)
     where p.has
     union all
     select case when s.dbid in (0, d.oid) then 'the ' || pg_describe_object(s.classid, s.objid, 0) else 'rights in another database' end
     from pg_shdepend s join pg_database d on d.datname = current_database()
     where s.refclassid = 'pg_authid'::regclass and s.refobjid = l.oid and s.classid <> 'pg_database'::regclass and not (
       s.dbid = d.oid and (s.classid = 'pg_namespace'::regclass and s.objid = to_regnamespace(quote_ident($2))
         or s.classid = 'pg_class'::regclass and s.objid in (select c.oid from pg_class c where c.relnamespace = to_regnamespace(quote_ident($2)))))
     union all
     select 'the role ' || m.roleid::regrole from pg_auth_members m where m.member = l.oid
     union all
     select 'CREATE in the database ' || current_database() where has_database_privilege(l.oid, current_database(), 'create')
     union all
     select 'TEMPORARY in the database ' || current_database() where has_database_privilege(l.oid, current_database(), 'temporary')
     union all
     select 'CREATE in the schema ' || n.nspname from pg_namespace n
     where has_schema_privilege(l.oid, n.oid, 'create')
     union all
     select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname not in ('pg_catalog', 'information_schema', $2) and n.nspname !~ '^pg_toast' and (
       case when c.relkind = 'S' then has_sequence_privilege(l.oid, c.oid, 'usage, select, update')
         when c.relkind in ('r', 'p', 'v', 'm', 'f') then has_any_column_privilege(l.oid, c.oid, 'select, insert, update, references')
           or has_table_privilege(l.oid, c.oid, 'delete, truncate, trigger') end)
     union all
     select 'the function ' || f.oid::regprocedure from pg_proc f join pg_namespace n on n.oid = f.pronamespace
     where f.prosecdef and n.nspname not in ('pg_catalog', 'information_schema') and has_schema_privilege(l.oid, n.oid, 'usage')
       and has_function_privilege(l.oid, f.oid, 'execute')
   ) x group by x.what order by x.what !~ '^the ', x.what limit 5`,
)

/** $1: login. Lists the other databases of the server that the login may connect to. */
export const listOtherDatabasesSql = statement(
  'list_other_databases_of_login',
  `select d.datname as name from pg_database d join pg_roles r on r.rolname = $1
   where d.datallowconn and d.datname <> current_database() and has_database_privilege(r.oid, d.oid, 'connect') order by 1`,
)
