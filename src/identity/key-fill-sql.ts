import { statement } from '../db/db.ts'

/** Returns the organizations with people whose keys are not computed yet. It costs one probe of an index per organization. */
export const listUnfilledSql = statement(
  'list_unfilled',
  `select h.organization_id from change_heads h where exists (
     select from entities e where e.organization_id = h.organization_id and e.stack_id = 0 and not e.has_keys
   ) order by h.organization_id`,
)

/** $2: after this id, $3: limit. Reads people without keys in order of id. */
export const readWithoutKeysSql = statement(
  'read_without_keys',
  `select e.id, e.ctid, e.first_name, e.last_name, e.email, e.mobile_prefix, e.mobile_number, e.date_of_birth
   from entities e
   where e.organization_id = $1 and e.stack_id = 0 and not e.has_keys and e.id > $2
   order by e.id limit $3`,
)

/**
 * $2: [{id, ctid, email_key, mobile_key, name_key}]. Neither their version nor their time changes. A row that has
 * moved since it was read, with its shard, keeps `has_keys`, and the next run fills it. Returns the number of the others.
 */
export const fillKeysSql = statement(
  'fill_keys',
  `with v as materialized (
     select * from jsonb_to_recordset($2::text::jsonb) as v(id uuid, ctid tid, email_key text, mobile_key text, name_key text)
   ), filled as (
     update entities e set email_key = v.email_key, mobile_key = v.mobile_key, name_key = v.name_key, has_keys = true
     from v
     where e.ctid = any(array(select v.ctid from v)) and e.organization_id = $1 and e.stack_id = 0 and e.id = v.id
     returning 1
   ) select count(*)::integer as count from filled`,
)
