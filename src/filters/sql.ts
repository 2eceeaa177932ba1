import { statement } from '../db/db.ts'

/**
 * $2: stack, $3: key, $4: the archived relationships of that key, whose links a read still shows. Whether an entity carries the
 * key, and the number of the last change that this answer knows of.
 */
export const searchKeySql = statement(
  'search_key',
  `select h.sequence,
     exists (select from entities e where e.organization_id = $1 and e.stack_id = $2 and e.attributes ? $3)
     or (cardinality($4::integer[]) > 0
       and exists (select from links l where l.organization_id = $1 and l.attribute_id = any($4))) as carried
   from change_heads h where h.organization_id = $1`,
)

/**
 * $4: the number of a change up to which no entity carried the key. Whether a later change gave it to one, and the number of the
 * last change; `carried` is null where there are more than $5 to look through.
 */
export const searchKeySinceSql = statement(
  'search_key_since',
  `select h.sequence,
     case when h.sequence - $4 <= $5 then exists (
       select from changes c where c.organization_id = $1 and c.sequence > $4 and c.stack_id = $2
         and c.after->'attribute_values' ? $3
     ) end as carried
   from change_heads h where h.organization_id = $1`,
)
