import { statement } from '../db/db.ts'

/** $2: id, $3: key, $4: name, $5: scope, $6: fields as JSON or null, $7: state, $8: the time. */
export const insertRoleSql = statement(
  'insert_role',
  `insert into roles (organization_id, id, key, name, scope, fields, state, created_at, updated_at)
   values ($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $8)`,
)

/** $2: id, $3: name, $4: scope, $5: fields as JSON or null, $6: state, $7: the time. */
export const updateRoleSql = statement(
  'update_role',
  `update roles set name = $3, scope = $4, fields = $5::text::jsonb, state = $6, updated_at = $7
   where organization_id = $1 and id = $2`,
)
