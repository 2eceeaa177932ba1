import { statement } from '../db/db.ts'

/**
 * The estimated number of rows of the change log, of all organizations: the larger of PostgreSQL's two statistics. And the
 * age of the oldest transaction of the database in seconds, 0 if there is none. Transactions of other roles are seen with pg_read_all_stats only.
 */
export const estimateChangesSql = statement(
  'estimate_changes',
  `select greatest(reltuples, pg_stat_get_live_tuples(oid), 0)::float8 as rows,
          (select greatest(coalesce(extract(epoch from now() - min(t.began)), 0), 0)::float8 from (
             select xact_start as began from pg_stat_activity
              where datname = current_database() and backend_type = 'client backend'
             union all select prepared from pg_prepared_xacts where database = current_database()) t) as transaction_seconds
     from pg_class where oid = 'changes'::regclass`,
)
