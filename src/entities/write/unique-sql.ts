import { statement } from '../../db/db.ts'

/**
 * $2: [{number, stack_id, index_id, term, key, value}]. Returns up to two entities that have each value: one of them may be the entity
 * that is written. The term leads to them, and the row decides.
 */
export const findHoldersSql = statement(
  'find_holders',
  `select a.number, h.id, h.external_id
   from jsonb_to_recordset($2::text::jsonb) as a(number integer, stack_id integer, index_id integer, term text, key text, value jsonb)
   cross join lateral (
     select e.id, e.external_id from (
       select t.entity_id from terms t
       where t.organization_id = $1 and t.index_id = a.index_id and t.value = a.term offset 0
     ) t cross join lateral (
       select e.id, e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = t.entity_id and e.attributes->a.key = a.value offset 0
     ) e limit 2
   ) h`,
)
