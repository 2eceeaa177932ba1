import { statement } from '../db/db.ts'

/**
 * $2: time, $3: limit. Returns the unprocessed deletions in order of number. `ripe` is true for those before the time.
 */
export const readDeletionsSql = statement(
  'read_deletions',
  `select c.sequence, c.entity_id, c.at < $2 as ripe from changes c
   where c.organization_id = $1 and c.operation = 'delete'
     and c.sequence > (select s.sequence from sweeps s where s.organization_id = $1)
   order by c.sequence limit $3`,
)

/**
 * $2: ids of deleted entities, $3: limit. Returns how many links were found and deleted. Another process may delete
 * some. A target that was restored meanwhile keeps its links.
 */
export const deleteDanglingLinksSql = statement(
  'delete_dangling_links',
  `with found as materialized (
     select l.source_id, l.attribute_id, l.target_id from links l
     where l.organization_id = $1 and l.target_id = any($2::uuid[])
       and not exists (
         select from entities t where t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
       )
     limit $3
   ), gone as (
     delete from links l using found d
     where l.organization_id = $1 and l.source_id = d.source_id and l.attribute_id = d.attribute_id
       and l.target_id = d.target_id
     returning 1
   ) select (select count(*) from found)::integer as found, (select count(*) from gone)::integer as gone`,
)

/** $2: number of the last processed deletion. The position never moves back: several processes may clean up at once. */
export const recordSweepSql = statement(
  'record_sweep',
  'update sweeps set sequence = greatest(sequence, $2) where organization_id = $1',
)
