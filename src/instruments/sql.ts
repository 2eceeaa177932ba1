import { statement } from '../db/db.ts'

/** About how many rows the change log has, of all organizations: what statistics know, whichever know more. */
export const estimateChangesSql = statement(
  'estimate_changes',
  `select greatest(reltuples, pg_stat_get_live_tuples(oid), 0)::float8 as rows
     from pg_class where oid = 'changes'::regclass`,
)
