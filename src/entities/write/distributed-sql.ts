import { statement } from '../../db/db.ts'
import { insertedColumns } from './sql.ts'

// Citus routes no INSERT beside an UPDATE, and its COPY fails with XX000 if a name is taken. A transaction of a distributed database
// runs these statements in place of the faster ones of sql.ts.

const types: Record<string, string> = {
  ...{ stack_id: 'integer', id: 'uuid', version: 'integer', answers: 'jsonb', attributes: 'jsonb' },
  ...{ active: 'boolean', email_consent: 'boolean', sms_consent: 'boolean', push_notification_consent: 'boolean' },
  ...{ created_at: 'timestamptz', updated_at: 'timestamptz', has_keys: 'boolean' },
}
const columns = insertedColumns.filter(column => column !== 'organization_id')

/** $2: rows in order of their names, as objects of their columns. */
export const insertEntitiesSql = statement(
  'insert_entities',
  `insert into entities (organization_id, ${columns.join(', ')})
   select h.organization_id, ${columns.map(column => `v.${column}`).join(', ')}
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb)
     as v(${columns.map(column => `${column} ${types[column] ?? 'text'}`).join(', ')})
   where h.organization_id = $1`,
)

/** $2: changes in order, $3: the time. Appends the log under the lock of the head. */
export const insertChangesSql = statement(
  'insert_changes',
  `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
     actor, request_id, link_targets)
   select h.organization_id, v.sequence, $3, 'entity', v.stack_id, v.id, v.operation, v.version,
     v.before, v.after, v.actor, v.request_id, v.link_targets
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(sequence bigint, stack_id integer, id uuid,
     operation text, version integer, before jsonb, after jsonb, actor text, request_id text, link_targets jsonb)
   where h.organization_id = $1`,
)
