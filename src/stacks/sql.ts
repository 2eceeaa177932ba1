import { statement } from '../db/db.ts'

/** $2: id, $3: key, $4: name, $5: kind, $6: retention in days, $7: label, $8: the time, $9: the version. */
export const insertStackSql = statement(
  'insert_stack',
  `insert into stacks (organization_id, id, key, name, kind, retention_days, label, created_at, updated_at, version)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)`,
)

/** $2: id, $3: name, $4: retention in days, $5: label, $6: the time, $7: the version. */
export const updateStackSql = statement(
  'update_stack',
  `update stacks set name = $3, retention_days = $4, label = $5, updated_at = $6, version = $7
   where organization_id = $1 and id = $2`,
)
