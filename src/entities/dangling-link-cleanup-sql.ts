import { statement } from '../db/db.ts'

/** $2: a time, $3: how many. The deletions that the sweeper has not followed yet, in order, and whether they came before it. */
export const readDeletionsSql = statement(
  'read_deletions',
  `select c.sequence, c.entity_id, c.at < $2 as ripe from changes c
   where c.organization_id = $1 and c.operation = 'delete'
     and c.sequence > (select s.sequence from sweeps s where s.organization_id = $1)
   order by c.sequence limit $3`,
)

/** $2: ids of deleted entities, $3: how many links at most. How many were found, and how many went: others sweep, too. */
export const deleteDanglingLinksSql = statement(
  'delete_dangling_links',
  `with found as materialized (
     select source_id, attribute_id, target_id from links
     where organization_id = $1 and target_id = any($2::uuid[]) limit $3
   ), gone as (
     delete from links l using found d
     where l.organization_id = $1 and l.source_id = d.source_id and l.attribute_id = d.attribute_id
       and l.target_id = d.target_id
     returning 1
   ) select (select count(*) from found)::integer as found, (select count(*) from gone)::integer as gone`,
)

/** $2: the deletion that was followed last. Never backwards: several servers may sweep. */
export const recordSweepSql = statement(
  'record_sweep',
  'update sweeps set sequence = greatest(sequence, $2) where organization_id = $1',
)
