import { statement } from '../db/db.ts'
import { channels, channelTable } from '../values/channels.ts'

/** $2: id, $3: key, $4: name, $5: description, $6: filter, $7: the time, $8: the version. The head must be locked. */
export const insertSegmentSql = statement(
  'insert_segment',
  `insert into segments (organization_id, id, key, name, description, filter, filter_changed_at, created_at, updated_at, version)
   values ($1, $2, $3, $4, $5, $6::jsonb, $7, $7, $7, $8)`,
)

/**
 * $2: the name of the follower. The position begins at the head, because no earlier change concerns the first segment.
 */
export const insertSegmentsPositionSql = statement(
  'insert_segments_position',
  `insert into followers (organization_id, name, sequence)
   select h.organization_id, $2, h.sequence from change_heads h where h.organization_id = $1
   on conflict do nothing`,
)

/**
 * $2: id, $3: name, $4: description, $5: filter, $6: the time, $7: the version, $8: the time if the filter changes, or
 * null.
 */
export const updateSegmentSql = statement(
  'update_segment',
  `update segments set name = $3, description = $4, filter = $5::jsonb, updated_at = $6, version = $7, filter_changed_at = coalesce($8, filter_changed_at)
   where organization_id = $1 and id = $2`,
)

/** $2: id, $3: the time, $4: the version. */
export const deleteSegmentSql = statement(
  'delete_segment',
  `update segments set deleted_at = $3, since = null, members_condition = null, name = '', description = null, filter = '{}',
     version = $4
   where organization_id = $1 and id = $2`,
)

/** $2: ids. */
export const readSegmentStartsSql = statement(
  'read_segment_starts',
  'select g.since from segments g where g.organization_id = $1 and g.id = any($2::integer[])',
)

/**
 * Returns the segments as the follower has computed them, and whether they are deleted while their other rows still
 * exist.
 */
export const readSegmentStatesSql = statement(
  'read_segment_states',
  `select g.id, g.deleted_at is not null and not g.forgotten as is_left_over, g.members_condition, g.since,
     (extract(epoch from g.evaluated_at) * 1000)::float8 as evaluated_ms
   from segments g where g.organization_id = $1`,
)

/** $2: ids. The feed reports no moves of these segments until {@link finishSegmentsSql}. */
export const beginSegmentsSql = statement(
  'begin_segments',
  'update segments set since = null, members_condition = null where organization_id = $1 and id = any($2::integer[])',
)

/**
 * $2: [{id, condition}], $3: the change after which the feed reports moves, $4: the time that relative times count
 * from.
 */
export const finishSegmentsSql = statement(
  'finish_segments',
  `update segments g set members_condition = v.condition, since = $3, evaluated_at = $4
   from jsonb_to_recordset($2::text::jsonb) as v(id integer, condition text)
   where g.organization_id = $1 and g.id = v.id and g.deleted_at is null`,
)

/** $2: segments, $3: the time that relative times count from. */
export const setEvaluatedSql = statement(
  'set_segments_evaluated',
  'update segments set evaluated_at = $3 where organization_id = $1 and id = any($2::integer[])',
)

/** $2: deleted segments whose other rows are deleted. */
export const markForgottenSql = statement(
  'mark_segments_forgotten',
  'update segments set forgotten = true where organization_id = $1 and id = any($2::integer[])',
)

/** $2: segments, $3: limit. Returns the number of deleted rows. */
const forget = (table: 'segment_changes' | 'segment_members') =>
  statement(
    `forget_${table}`,
    `with gone as (
     delete from ${table} s where s.organization_id = $1 and s.ctid = any(array(
       select x.ctid from ${table} x where x.organization_id = $1 and x.segment_id = any($2::integer[]) limit $3
     )) returning 1
   ) select count(*)::integer as count from gone`,
  )
export const forgetSegmentChangesSql = forget('segment_changes')
export const forgetSegmentMembersSql = forget('segment_members')

/** $2: segments, $3: after this person, $4: up to this one. */
export const readMembersBetweenSql = statement(
  'read_members_between',
  `select m.segment_id, m.person_id from segment_members m
   where m.organization_id = $1 and m.segment_id = any($2::integer[]) and m.person_id > $3 and m.person_id <= $4`,
)

/**
 * $2: segment, $3: after this person, $4: limit, $5: the name of the follower. Returns the members, and a number up to
 * which the feed has reported them. Later changes may report some members again. Returns no row while the members are
 * computed.
 */
export const readMembersSql = statement(
  'read_segment_members',
  `select least(f.sequence, h.sequence) as head, h.log_id, array(
     select m.person_id from segment_members m
     where m.organization_id = $1 and m.segment_id = $2 and m.person_id > $3 order by m.person_id limit $4
   ) as people
   from change_heads h join followers f on f.organization_id = $1 and f.name = $5 and f.id = 0
     join segments g on g.organization_id = $1 and g.id = $2 and g.since is not null
   where h.organization_id = $1`,
)

/** $2: people. */
export const readMembershipsSql = statement(
  'read_memberships',
  'select m.segment_id, m.person_id from segment_members m where m.organization_id = $1 and m.person_id = any($2::uuid[])',
)

/** $2: segments, $3: people, one for each. */
export const insertMembersSql = statement(
  'insert_segment_members',
  `insert into segment_members (organization_id, person_id, segment_id)
   select h.organization_id, v.person_id, v.segment_id
   from change_heads h cross join unnest($2::integer[], $3::uuid[]) as v(segment_id, person_id)
   where h.organization_id = $1
   on conflict do nothing`,
)

/** $2: segments, $3: people, one for each. */
export const deleteMembersSql = statement(
  'delete_segment_members',
  `delete from segment_members m where m.organization_id = $1 and m.ctid = any(array(
     select k.ctid from unnest($2::integer[], $3::uuid[]) as v(segment_id, person_id) cross join lateral (
       select k.ctid from segment_members k
       where k.organization_id = $1 and k.segment_id = v.segment_id and k.person_id = v.person_id offset 0
     ) k
   ))`,
)

/**
 * $2: segments, $3: people, $4: numbers of changes, $5: whether they entered, as parallel arrays. A person in several
 * pages of a batch may move again between them by an earlier change. The feed then has only the later change, with the
 * final state.
 */
export const insertSegmentChangesSql = statement(
  'insert_segment_changes',
  `insert into segment_changes (organization_id, segment_id, person_id, sequence, entered)
   select h.organization_id, v.segment_id, v.person_id, greatest(v.sequence, (
     select max(s.sequence) from (
       select c.segment_id, c.sequence from segment_changes c
       where c.organization_id = $1 and c.person_id = v.person_id offset 0
     ) s where s.segment_id = v.segment_id
   )), v.entered
   from change_heads h cross join unnest($2::integer[], $3::uuid[], $4::bigint[], $5::boolean[])
     as v(segment_id, person_id, sequence, entered)
   where h.organization_id = $1
   on conflict (organization_id, segment_id, sequence, person_id) do update set entered = excluded.entered`,
)

/**
 * $2: after this number, $3: up to this number, $4: limit. Changes of definitions have no entity. `moved` is a segment
 * that the clock has moved people of.
 */
export const readBatchSql = statement(
  'read_segment_batch',
  `select c.sequence, c.stack_id, c.entity_id as id, c.operation,
     case when c.subject = 'segment' and c.after ? 'evaluated_at' then c.definition_id end as moved
   from changes c
   where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3 order by c.sequence limit $4`,
)

/** $2: people who were merged or no longer exist. Returns the people that their identifiers led to or lead to now. */
export const readMergePartnersSql = statement(
  'read_merge_partners',
  `select m.merged_id as id, p.id as partner_id from merges m cross join lateral (values (m.into_id), (m.person_id)) as p(id)
   where m.organization_id = $1 and m.merged_id = any($2::uuid[])`,
)

/** A merge or unmerge that has not moved all links yet. */
export const readUnfinishedMergeSql = statement(
  'read_unfinished_merge',
  'select m.id from merges m where m.organization_id = $1 and m.moving is not null limit 1',
)

/** $2: targets, $3: attributes, $4: limit. */
export const readSourcesSql = statement(
  'read_segment_sources',
  `select l.source_id, l.target_id from links l
   where l.organization_id = $1 and l.target_id = any($2::uuid[]) and l.attribute_id = any($3::integer[]) limit $4`,
)

/**
 * $2: after this number, $3: up to this number, $4: attributes. Returns the earlier targets of changed entities, and
 * their survivors after merges.
 */
export const readFormerTargetsSql = statement(
  'read_former_targets',
  `select l.attribute_id::integer, p.id, max(c.sequence) as cause
   from changes c cross join lateral jsonb_each(c.links) as l(attribute_id, sides)
     cross join lateral jsonb_array_elements_text(l.sides->'before') as t(id)
     cross join lateral (
       select t.id::uuid as id
       union all
       select m.person_id from merges m where m.organization_id = $1 and m.merged_id = t.id::uuid
     ) p
   where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3 and c.links ?| $4::text[] and l.attribute_id = any($4::text[])
   group by l.attribute_id, p.id`,
)

/** $2: sources, $3: attributes. */
export const readTargetsOfSql = statement(
  'read_segment_targets',
  `select l.source_id, l.target_id from links l
   where l.organization_id = $1 and l.source_id = any($2::uuid[]) and l.attribute_id = any($3::integer[])
     and l.target_id is not null`,
)

/** $2: a target, $3: an attribute, $4: after this source, $5: limit. In order of the source. */
export const readSourcesOfSql = statement(
  'read_segment_sources_of',
  `select l.source_id, l.target_id from links l
   where l.organization_id = $1 and l.target_id = $2 and l.attribute_id = $3 and l.source_id > $4
   order by l.source_id limit $5`,
)

/** $2: after this entity, $3: limit. Returns the entities that were linked with an erased one. */
export const readChecksSql = statement(
  'read_segment_checks',
  `select k.entity_id as id from segment_checks k where k.organization_id = $1 and k.entity_id > $2
   order by k.entity_id limit $3`,
)

/** $2: entities. */
export const deleteChecksSql = statement(
  'delete_segment_checks',
  'delete from segment_checks where organization_id = $1 and entity_id = any($2::uuid[])',
)

/** $2: people. Returns the people with an address that one of $2 has answered for. */
export const readSharingSql = statement(
  'read_sharing',
  `select e.id, w.person_id as answered_by from unnest($2::uuid[]) as v(id) cross join lateral (
     select distinct w.channel, w.address, w.person_id from address_answers w
     where w.organization_id = $1 and w.person_id = v.id
   ) w cross join lateral (
     ${channels
       .map(
         channel => `select e.id from entities e
     where e.organization_id = $1 and e.stack_id = 0 and w.channel = '${channel}' and e.${channelTable[channel].key} = w.address`,
       )
       .join(' union all ')}
   ) e`,
)
