import { statement } from '../db/db.ts'

/**
 * The estimated number of rows of the change log of all organizations: the larger of PostgreSQL's two statistics. Also
 * the age of the database's oldest transaction in seconds, or 0 without one. Transactions of other roles are visible
 * only with pg_read_all_stats.
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
