import { statement } from '../../db/db.ts'

/** $2: time, $3: limit, $4: after this number, $5: up to this number. Returns the deletions of entities in order. `ripe` is true for those before the time. */
export const readDeletionsSql = statement(
  'read_deletions',
  `select c.sequence, c.entity_id, c.at, c.at < $2 as ripe from changes c
   where c.organization_id = $1 and c.operation = 'delete' and c.entity_id is not null and c.sequence > $4 and c.sequence <= $5
   order by c.sequence limit $3`,
)

/** The links l of deleted entities. A target that was restored meanwhile keeps its links. */
const danglingLinks = `links l
   where l.organization_id = $1 and l.target_id = any($2::uuid[]) and not exists (
     select from entities t where t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
   )`

/** $2: ids of deleted entities, $3: limit. Remembers links to them, which {@link deleteDanglingLinksSql} then deletes. */
export const rememberDanglingLinksSql = statement(
  'remember_dangling_links',
  `insert into past_links (organization_id, target_id, source_id)
   select l.organization_id, l.target_id, l.source_id from (
     select l.organization_id, l.target_id, l.source_id from ${danglingLinks} limit $3
   ) l
   order by l.target_id, l.source_id on conflict do nothing`,
)

/**
 * $2: ids of deleted entities, $3: limit. Returns how many links were found and deleted. Another process may delete
 * some.
 */
export const deleteDanglingLinksSql = statement(
  'delete_dangling_links',
  `with found as materialized (
     select l.source_id, l.attribute_id, l.target_id from ${danglingLinks} and exists (
       select from past_links p where p.organization_id = $1 and p.target_id = l.target_id and p.source_id = l.source_id
     )
     limit $3
   ), gone as (
     delete from links l using found d
     where l.organization_id = $1 and l.source_id = d.source_id and l.attribute_id = d.attribute_id
       and l.target_id = d.target_id
     returning 1
   ) select (select count(*) from found)::integer as found, (select count(*) from gone)::integer as gone`,
)
