import { statement } from '../db/db.ts'

/** $2: number of a change. Returns the later changes of definitions, the last one first. */
export const readDefinitionChangesSql = statement(
  'read_definition_changes',
  `select c.sequence, c.subject, c.definition_id, c.operation, c.before from changes c
   where c.organization_id = $1 and c.entity_id is null and c.subject in ('stack', 'attribute', 'consent_type')
     and c.sequence > $2
   order by c.sequence desc`,
)
