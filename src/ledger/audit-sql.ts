import { statement } from '../db/db.ts'
import { entryColumns, followerName } from './sql.ts'

/**
 * The state to audit, and what lies beyond it: `position` is the last change whose answers are sealed, `waiting` are the answers of later
 * ones. The order within the changes keeps PostgreSQL from joining all answers of the organization.
 */
export const beginAuditSql = statement(
  'begin_audit',
  `select o.key as organization, coalesce(l.size, 0) as size, l.edge, l.checkpoint, coalesce(f.sequence, 0) as position,
     (select count(*) from ledger_entries e where e.organization_id = $1 and (e.index < 0 or e.index >= coalesce(l.size, 0)))
       as entries_beyond,
     (select count(*) from ledger_tiles t where t.organization_id = $1) as tiles,
     (select count(*) from consent_history h where h.organization_id = $1) as answers, (
       select count(h.version) from changes c cross join lateral (
         select h.version from consent_history h
         where h.organization_id = $1 and h.person_id = c.entity_id and h.version = c.version
         order by h.consent_type_id, h.channel
       ) h
       where c.organization_id = $1 and c.sequence > coalesce(f.sequence, 0) and c.stack_id = 0
     ) as waiting
   from organizations o left join ledgers l on l.organization_id = $1
     left join followers f on f.organization_id = $1 and f.name = '${followerName}' and f.id = 0
   where o.id = $1`,
)

/** $2: the first index, $3: the index after the last. In order of the index. */
export const readEntryRangeSql = statement(
  'read_entry_range',
  `select ${entryColumns} from ledger_entries e
   where e.organization_id = $1 and e.index >= $2 and e.index < $3 order by e.index`,
)
