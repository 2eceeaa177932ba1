import { statement } from '../db/db.ts'

/**
 * $2: stack, $3: key, $4: the ids of the key's archived relationships, whose links reads still show. Returns whether an
 * entity carries the key, and the number of the last change that the search includes.
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
 * $2: stack, $3: key, $4: the number of a change up to which no entity carried the key, $5: the maximum number of
 * changes to search. Returns whether a later change gave the key to an entity, and the number of the last change.
 * `carried` is null if there are more changes than the maximum.
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
