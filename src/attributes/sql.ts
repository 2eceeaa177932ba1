import { statement } from '../db/db.ts'

/**
 * $2: id, $3: owner, $4: key, $5: name, $6: description, $7: type, $8: target, $9: cardinality, $10: indexed, $11: the time,
 * $12: index id.
 */
export const insertAttributeSql = statement(
  'insert_attribute',
  `insert into attributes (organization_id, id, owner_stack_id, key, name, description, type, target_stack_id, cardinality,
     indexed, state, created_at, updated_at, index_id)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'active', $11, $11, $12)`,
)

/**
 * $2: id, $3: name, $4: description, $5: cardinality, $6: indexed, $7: state, $8: the time, $9: index id. A new index is not
 * ready.
 */
export const updateAttributeSql = statement(
  'update_attribute',
  `update attributes set name = $3, description = $4, cardinality = $5, indexed = $6, state = $7, updated_at = $8,
     index_id = $9, index_ready = index_ready and $9 is not distinct from index_id
   where organization_id = $1 and id = $2`,
)
