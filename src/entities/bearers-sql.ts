import { statement } from '../db/db.ts'

/** The person that the alias a.external_id leads to. */
export const byAlias = `(
       select s.person_id from aliases s
       where a.stack_id = 0 and s.organization_id = $1 and s.external_id = a.external_id offset 0
     )`

/** The person that the merged identifier a.id leads to. */
export const byMerge = `(
       select m.person_id from merges m
       where a.stack_id = 0 and m.organization_id = $1 and m.merged_id = a.id and m.unmerged_sequence is null offset 0
     )`

/**
 * $2: [{stack_id, external_id | id}]. Returns the entities with these names or internal identifiers (`asked_id`),
 * without locks. `current_name` is the external identifier.
 */
export const readBearersSql = statement(
  'read_bearers',
  `select a.stack_id, a.external_id, a.id as asked_id, e.id, e.current_name
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid) cross join lateral (
     (select e.id, e.external_id as current_name from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0)
     union all
     (select e.id, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = a.id offset 0)
   ) e`,
)

/** As `read_bearers`, and finds people by alias and by the internal identifier of a person who was merged into them. */
export const readBearersWithAliasesSql = statement(
  'read_bearers_with_aliases',
  `select a.stack_id, a.external_id, a.id as asked_id, e.id, e.is_alias, e.current_name
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid) cross join lateral (
     (select e.id, false as is_alias, e.external_id as current_name from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0)
     union all
     (select e.id, false, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = a.id offset 0)
     union all
     (select e.id, true, e.external_id from (
       select s.person_id from ${byAlias} s union all select m.person_id from ${byMerge} m
     ) s cross join lateral (
       select e.id, e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = s.person_id offset 0
     ) e)
   ) e`,
)

/**
 * $2: [{position, stack_id, id}], targets of former links. Returns the current target of each: for a merged person the
 * survivor, even if it is deleted. Returns no row for an erased target.
 */
export const readTargetsSql = statement(
  'read_targets',
  `select v.position, p.id, e.external_id, e.id is null as is_deleted, nullif(v.id, p.id) as written_id
   from jsonb_to_recordset($2::text::jsonb) as v(position integer, stack_id integer, id uuid) cross join lateral (
     select coalesce((
       select m.person_id from merges m
       where v.stack_id = 0 and m.organization_id = $1 and m.merged_id = v.id and m.unmerged_sequence is null
     ), v.id) as id offset 0
   ) p left join lateral (
     select e.id, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = v.stack_id and e.id = p.id offset 0
   ) e on true
   where e.id is not null or 'delete' = (
     select c.operation from changes c where c.organization_id = $1 and c.entity_id = p.id order by c.version desc limit 1
   )
   order by v.position`,
)
