import { statement } from '../db/db.ts'

/**
 * $2: id, $3: key, $4: name, $5: kind, $6: retention in days, $7: label, $8: summary, $9: the relationship that erases
 * its records, $10: the time, $11: the version.
 */
export const insertStackSql = statement(
  'insert_stack',
  `insert into stacks (organization_id, id, key, name, kind, retention_days, label, summary, erased_with, created_at, updated_at,
     version)
   values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $10, $11)`,
)

/**
 * $2: id, $3: name, $4: retention in days, $5: label, $6: summary, $7: the relationship that erases its records, $8:
 * the time, $9: the version.
 */
export const updateStackSql = statement(
  'update_stack',
  `update stacks set name = $3, retention_days = $4, label = $5, summary = $6::jsonb, erased_with = $7, updated_at = $8, version = $9
   where organization_id = $1 and id = $2`,
)
