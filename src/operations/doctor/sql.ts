import { statement } from '../../db/db.ts'

export const readServerSql = statement(
  'read_server',
  `select current_setting('server_version') as version, current_setting('server_version_num')::integer as version_number,
          current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
          current_setting('full_page_writes') as full_page_writes, current_setting('wal_level') as wal_level,
          current_setting('archive_mode') as archive_mode, pg_is_in_recovery() as standby,
          current_setting('synchronous_standby_names') as synchronous_standby_names, current_setting('server_encoding') as encoding,
          (select count(*)::integer from pg_stat_replication r
            where coalesce(r.state, 'streaming') = 'streaming' and r.application_name is distinct from 'pg_receivewal'
              and not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical')
          ) as standbys,
          current_setting('max_connections')::integer as connections_limit,
          current_setting('superuser_reserved_connections')::integer
            + coalesce(current_setting('reserved_connections', true), '0')::integer as connections_reserved`,
)

/** Counts the connections of other programs. The connections that kith needs are counted separately. */
export const countForeignConnectionsSql = statement(
  'count_strangers',
  `select count(*)::integer as foreign_count from pg_stat_activity
    where backend_type = 'client backend' and application_name not like 'kith%'`,
)

export const readClockSql = statement(
  'read_clock',
  `select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`,
)

/** The oldest transaction of the database that the role may see, or no row. */
export const readOldestTransactionSql = statement(
  'read_oldest_transaction',
  `select t.holder, extract(epoch from now() - t.began)::float8 as seconds from (
     select format('the process %s (%s)', pid, application_name) as holder, xact_start as began from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
     union all
     select format('the prepared transaction %s', gid), prepared from pg_prepared_xacts where database = current_database()) t
    where t.began is not null order by t.began limit 1`,
)

export const readArchiverSql = statement(
  'read_archiver',
  `select archived_count::integer as archived, coalesce(last_failed_time > last_archived_time, last_failed_time is not null)
            as failing, last_failed_wal as failed_segment
     from pg_stat_archiver`,
)

export const findTableSql = statement('find_table', `select to_regclass($1) is not null as present`)

/** The rights of the role. `may_write` is true for a database without tables of kith. */
export const readRightsSql = statement(
  'read_rights',
  `select quote_ident(current_user) as role, has_schema_privilege('public', 'create') as may_create,
          coalesce((select bool_and(has_table_privilege(t.id::oid, p.name))
                      from to_regclass('public.entities') as t(id), unnest('{select,insert,update,delete}'::text[]) as p(name)
                     where t.id is not null), true) as may_write`,
)

export const readMigrationsSql = statement('read_migrations', 'select name from migrations order by id')

/** Any twenty ready indexes of attributes. The values of relationships are links. */
export const readIndexSampleSql = statement(
  'read_index_sample',
  `select d.organization_id, o.key as organization, coalesce(d.index_id, 0) as index_id, d.owner_stack_id as stack_id, d.key, d.type, d.cardinality
   from attributes d join organizations o on o.id = d.organization_id
   where d.index_ready and d.state = 'active' and d.target_stack_id is null order by random() limit 20`,
)

/** $2: stack, $3: key. The values of the first and last entities of a stack. */
export const readValueSampleSql = statement(
  'read_value_sample',
  `(select e.id, e.attributes->$3 as value from entities e where e.organization_id = $1 and e.stack_id = $2 order by e.id limit 25)
   union all
   (select e.id, e.attributes->$3 from entities e where e.organization_id = $1 and e.stack_id = $2 order by e.id desc limit 25)`,
)

/** $2: index, $3: [{value, id}]. Returns the ids of the terms that the index lacks. */
export const readMissingTermsSql = statement(
  'read_missing_terms',
  `select v.id from jsonb_to_recordset($3::text::jsonb) as v(value text, id uuid)
   where not exists (
     select from terms t where t.organization_id = $1 and t.index_id = $2 and t.value = v.value and t.entity_id = v.id
   )`,
)

/** $2: index, $3: stack, $4: key. The first and last terms of an index, each with the value of its entity. */
export const readTermSampleSql = statement(
  'read_term_sample',
  `select t.entity_id as id, t.value as term, (
     select e.attributes->$4 from entities e where e.organization_id = $1 and e.stack_id = $3 and e.id = t.entity_id
   ) as value
   from (
     (select t.value, t.entity_id from terms t where t.organization_id = $1 and t.index_id = $2
      order by t.value, t.entity_id limit 25)
     union all
     (select t.value, t.entity_id from terms t where t.organization_id = $1 and t.index_id = $2
      order by t.value desc, t.entity_id desc limit 25)
   ) t`,
)
