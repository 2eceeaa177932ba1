import { statement } from '../db/db.ts'

/**
 * Returns the organizations with people whose keys are not computed yet. A loose index scan jumps from one organization to the next,
 * so it costs one probe when there are none.
 */
export const listUnfilledSql = statement(
  'list_unfilled',
  `with recursive found as (
     (select e.organization_id from entities e where e.stack_id = 0 and not e.has_keys
       order by e.organization_id, e.id limit 1)
     union all
     select (select e.organization_id from entities e
       where e.organization_id > f.organization_id and e.stack_id = 0 and not e.has_keys
       order by e.organization_id, e.id limit 1)
     from found f where f.organization_id is not null
   )
   select f.organization_id from found f where f.organization_id is not null`,
)

/**
 * $2: after this id, $3: limit. Locks people without keys in order of id. Rows that another process has locked belong to it, or to
 * a later run.
 */
export const lockUnfilledSql = statement(
  'lock_unfilled',
  `select e.id, e.ctid, e.first_name, e.last_name, e.email, e.mobile_prefix, e.mobile_number, e.date_of_birth
   from entities e
   where e.organization_id = $1 and e.stack_id = 0 and not e.has_keys and e.id > $2
   order by e.id limit $3 for update skip locked`,
)

/** $2: [{id, ctid, email_key, mobile_key, name_key}] of the locked people. Neither their version nor their time changes. */
export const fillKeysSql = statement(
  'fill_keys',
  `with v as materialized (
     select * from jsonb_to_recordset($2::text::jsonb) as v(id uuid, ctid tid, email_key text, mobile_key text, name_key text)
   )
   update entities e set email_key = v.email_key, mobile_key = v.mobile_key, name_key = v.name_key, has_keys = true
   from v
   where e.ctid = any(array(select v.ctid from v)) and e.organization_id = $1 and e.stack_id = 0 and e.id = v.id`,
)
