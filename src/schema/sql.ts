import { statement } from '../db/db.ts'

/**
 * $2: stack, $3: after this id, $4: limit, $5: key, $6: the ids of the relationships that ever had the key. Returns the
 * stored values in order of the ids. `is_linked` is true if a read shows a link under the key.
 */
export const scanValuesSql = statement(
  'scan_values',
  `select e.id, e.external_id, e.active, e.attributes->$5 as value,
     cardinality($6::integer[]) > 0 and exists (
       select from links l cross join lateral (
         select from entities t
         where t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id offset 0
       ) t
       where l.organization_id = $1 and l.source_id = e.id and l.attribute_id = any($6::integer[]) offset 0
     ) as is_linked
   from entities e
   where e.organization_id = $1 and e.stack_id = $2 and e.id > $3 order by e.id limit $4`,
)
