import { statement } from '../../db/db.ts'

/**
 * $2: stack, $3: entity, $4: highest version, $5: highest number. Returns the entity's last change within both, and the
 * time of its creation.
 */
export const readPastChangeSql = statement(
  'read_past_change',
  `select c.version, c.sequence, c.at, c.operation,
     case when c.operation = 'merge' then c.after->>'merged_into' end as merged_into, (
     select f.at from changes f where f.organization_id = $1 and f.entity_id = $3 order by f.version limit 1
   ) as created_at, (
     select l.operation = 'erase' from changes l where l.organization_id = $1 and l.entity_id = $3 order by l.version desc limit 1
   ) as is_erased
   from changes c
   where c.organization_id = $1 and c.entity_id = $3 and c.stack_id = $2 and c.version <= $4 and c.sequence <= $5
   order by c.version desc limit 1`,
)

/**
 * $2: entity, $3: version. Returns what the changes up to this version wrote, in order. Its creation or its last restore or unmerge is
 * the first, and has the whole entity.
 */
export const readLoggedStateSql = statement(
  'read_logged_state',
  `select c.after, c.links from changes c
   where c.organization_id = $1 and c.entity_id = $2 and c.version <= $3 and c.version >= (
     select b.version from changes b
     where b.organization_id = $1 and b.entity_id = $2 and b.version <= $3 and b.operation in ('create', 'restore', 'unmerge')
     order by b.version desc limit 1
   )
   order by c.version`,
)

/**
 * $2: person, $3: version. Returns the answer to each consent type and channel that stood at this version. Every answer
 * that was not superseded when it came replaced the one before, and so did every answer that a merge took over.
 */
export const readPastAnswersSql = statement(
  'read_past_answers',
  `select distinct on (a.consent_type_id, a.channel) a.consent_type_id, a.channel,
     a.state and not a.pending as state, a.pending, coalesce(a.collected_at, a.at) as answered_at, a.evidence->>'method' as method,
     (a.evidence->'text_version')::integer as text_version, nullif(a.person_id, $2) as person_id
   from (
     select a.*, a.version as since from consent_history a
     where a.organization_id = $1 and a.person_id = $2 and a.version <= $3 and not a.superseded
     union all
     select a.*, t.since from merges m cross join lateral jsonb_to_recordset(m.undo->'answers') as t(consent_type_id integer,
         channel text, person_id uuid, version integer, since integer, until integer)
       cross join lateral (
         select a.* from consent_history a
         where a.organization_id = $1 and a.person_id = t.person_id and a.version = t.version
           and a.consent_type_id = t.consent_type_id and a.channel = t.channel offset 0
       ) a
     where m.organization_id = $1 and m.into_id = $2 and t.since <= $3 and (t.until is null or t.until > $3)
   ) a
   order by a.consent_type_id, a.channel, a.since desc`,
)

/**
 * $2: [{position, stack_id, id}], $3: number of a change. Returns the targets that a read showed after this change, with their names of
 * then. The link to a person who was merged shows the person it was merged into. An import may log a target after the entity that links to
 * it; such a target counts as existing from its creation on. An erased target is left out.
 */
export const readPastTargetsSql = statement(
  'read_past_targets',
  `with recursive led as (
     select a.position, a.stack_id, a.id, 0 as steps
     from jsonb_to_recordset($2::text::jsonb) as a(position integer, stack_id integer, id uuid)
     union all
     select a.position, a.stack_id, m.into_id, a.steps + 1
     from led a join merges m on m.organization_id = $1 and m.merged_id = a.id and m.sequence <= $3
       and (m.unmerged_sequence is null or m.unmerged_sequence > $3)
     where a.stack_id = 0
   ), asked as (
     select distinct on (a.position) a.* from led a order by a.position, a.steps desc
   )
   select a.position, a.id,
     case when later.version is null then e.external_id else later.external_id end as external_id
   from asked a
     cross join lateral (
       select coalesce((
         select c.version from changes c
         where c.organization_id = $1 and c.entity_id = a.id and c.sequence <= $3 order by c.version desc limit 1
       ), (
         select c.version from changes c where c.organization_id = $1 and c.entity_id = a.id order by c.version limit 1
       )) as version offset 0
     ) held
     cross join lateral (
       select c.operation from changes c
       where c.organization_id = $1 and c.entity_id = a.id and c.version = held.version offset 0
     ) state
     left join lateral (
       select c.version, c.before->>'external_id' as external_id from changes c
       where c.organization_id = $1 and c.entity_id = a.id and c.version > held.version
         and (c.operation in ('delete', 'merge') or c.before ? 'external_id')
       order by c.version limit 1
     ) later on true
     left join lateral (
       select e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = a.id offset 0
     ) e on true
   where state.operation not in ('delete', 'merge') and 'erase' is distinct from (
       select c.operation from changes c
       where c.organization_id = $1 and c.entity_id = a.id order by c.version desc limit 1
     )
   order by a.position`,
)
