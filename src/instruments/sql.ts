import { statement } from '../db/db.ts'

/** The estimated number of rows of the change log, of all organizations: the larger of PostgreSQL's two statistics. */
export const estimateChangesSql = statement(
  'estimate_changes',
  `select greatest(reltuples, pg_stat_get_live_tuples(oid), 0)::float8 as rows
     from pg_class where oid = 'changes'::regclass`,
)
