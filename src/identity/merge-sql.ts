import { statement } from '../db/db.ts'

/**
 * $2: [{position, external_id | id}]. Returns whom each identifier leads to, directly or as an alias or a merged identifier. One that
 * leads to nobody has no row.
 */
export const findPeopleSql = statement(
  'find_people',
  `select a.position, e.id, e.external_id
   from jsonb_to_recordset($2::text::jsonb) as a(position integer, external_id text, id uuid) cross join lateral (
     select coalesce((
       select e.id from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.external_id = a.external_id offset 0
     ), (
       select s.person_id from aliases s where s.organization_id = $1 and s.external_id = a.external_id
     ), (
       select m.person_id from merges m where m.organization_id = $1 and m.merged_id = a.id and m.unmerged_sequence is null
     ), a.id) as id offset 0
   ) p cross join lateral (
     select e.id, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.id = p.id offset 0
   ) e`,
)

/** $2: a person, $3: limit. Returns the links to the person, whatever links to it. */
export const readLinksToSql = statement(
  'read_links_to',
  `select l.source_id, l.attribute_id from links l
   where l.organization_id = $1 and l.target_id = $2 limit $3`,
)

/** $2: [{stack_id, id}]. Returns the ids of those that exist. */
export const readSourcesSql = statement(
  'read_sources',
  `select e.id from jsonb_to_recordset($2::text::jsonb) as v(stack_id integer, id uuid) cross join lateral (
     select e.id from entities e where e.organization_id = $1 and e.stack_id = v.stack_id and e.id = v.id offset 0
   ) e`,
)

/**
 * $2: the person who is merged, $3: the person it is merged into. Moves the links of others. A source that links to both keeps one
 * link, at the first of the two positions. Returns the links as they were: `kept` is the position of the link to $3.
 */
export const moveLinksToSql = statement(
  'move_links_to',
  `with moved as materialized (
     select l.ctid as other, l.source_id, l.attribute_id, l.position, k.ctid as own, k.position as kept
     from links l left join links k on k.organization_id = $1 and k.source_id = l.source_id
       and k.attribute_id = l.attribute_id and k.target_id = $3
     where l.organization_id = $1 and l.target_id = $2 and l.source_id <> $2 and l.source_id <> $3
   ), led as (
     update links l set target_id = $3
     where l.ctid = any(array(select m.other from moved m where m.kept is null)) and l.organization_id = $1
   ), dropped as (
     delete from links l
     where l.ctid = any(array(select m.other from moved m where m.kept is not null)) and l.organization_id = $1
   ), shifted as (
     update links l set position = m.position from moved m
     where l.ctid = any(array(select m.own from moved m where m.kept > m.position)) and l.ctid = m.own
       and l.organization_id = $1 and m.kept > m.position
   )
   select m.source_id, m.attribute_id, m.position, m.kept from moved m`,
)

/** $2: the person who is merged, $3: the person it is merged into. Its aliases and the people merged into it lead there now. */
export const moveIdentifiersSql = statement(
  'move_identifiers',
  `with aliased as (
     update aliases s set person_id = $3 where s.organization_id = $1 and s.person_id = $2 returning s.external_id
   ), merged as (
     update merges m set person_id = $3
     where m.organization_id = $1 and m.person_id = $2 and m.unmerged_sequence is null returning m.id
   )
   select array(select a.external_id from aliased a order by 1) as aliases, array(select m.id from merged m order by 1) as merges`,
)

/** $2: merged, $3: into, $4: the version of the merge, $5: the time, $6: what unmerge needs. Runs under the lock of the head. */
export const insertMergeSql = statement(
  'insert_merge',
  `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo)
   select c.organization_id, 1 + coalesce((
     select m.id from merges m where m.organization_id = $1 order by m.id desc limit 1
   ), 0), $2::uuid, $3::uuid, $3::uuid, c.sequence, $5::timestamptz, $6::text::jsonb
   from changes c where c.organization_id = $1 and c.entity_id = $2 and c.version = $4
   returning id`,
)

/** $2: [{position, person_id, consent_type_id, channel}]. Returns the version of the last answer that was not superseded. */
export const readAnswerVersionsSql = statement(
  'read_answer_versions',
  `select v.position, h.version
   from jsonb_to_recordset($2::text::jsonb) as v(position integer, person_id uuid, consent_type_id integer, channel text)
     cross join lateral (
       select h.version from consent_history h
       where h.organization_id = $1 and h.person_id = v.person_id and h.consent_type_id = v.consent_type_id
         and h.channel = v.channel and not h.superseded
       order by h.version desc limit 1
     ) h`,
)

const merge = 'm.id, m.merged_id, m.into_id, m.person_id, m.sequence, m.undo'

/**
 * $2: the alias by which a merged person is named, or null, $3: its internal identifier, or null, $4: the survivor. An alias that the
 * person had before, by a match, names the merge that brought it.
 */
export const findMergeSql = statement(
  'find_merge',
  `select ${merge} from merges m
   where m.organization_id = $1 and m.unmerged_sequence is null and m.id = coalesce((
     select s.merge_id from aliases s where s.organization_id = $1 and s.external_id = $2
   ), (
     select n.id from merges n where n.organization_id = $1 and n.merged_id = $3 and n.unmerged_sequence is null
   ), (
     select n.id from merges n
     where n.organization_id = $1 and n.person_id = $4 and n.unmerged_sequence is null and n.undo->'aliases' ? $2
     order by n.id desc limit 1
   ))`,
)

/** $2: a person. The merges into it, also those that were undone, in order. */
export const readMergesIntoSql = statement(
  'read_merges_into',
  `select ${merge}, m.unmerged_sequence is null as stands from merges m
   where m.organization_id = $1 and m.into_id = $2 order by m.id`,
)

/**
 * A change that was made by a user, and whose values were removed since by the retention of the log. Its position is that of the
 * follower. Nothing tells what such a change wrote.
 */
const isEmptied = `c.operation = 'update' and c.after = '{}' and c.links is null and c.sequence <= (
  select f.sequence from followers f where f.organization_id = $1 and f.name = 'retention' and f.id = 0
)`

/** $2: a person, $3: after this number. Whether a change of the person since then was emptied. */
export const readIsEmptiedSql = statement(
  'read_is_emptied',
  `select exists (
     select from changes c where c.organization_id = $1 and c.entity_id = $2 and c.sequence > $3 and ${isEmptied}
   ) as is_emptied`,
)

/** $2: a person, $3: after this version, $4: other versions to leave out. Returns the fields and attribute values that were written. */
export const readWrittenKeysSql = statement(
  'read_written_keys',
  `select distinct k.key, k.is_attribute from changes c cross join lateral (
     select f.key, false as is_attribute from jsonb_object_keys(c.after) as f(key)
     union all
     select f.key, true from jsonb_object_keys(coalesce(c.after->'attribute_values', '{}')) as f(key)
     union all
     select a.key, true from jsonb_object_keys(coalesce(c.links, '{}')) as l(id)
       join attributes a on a.organization_id = $1 and a.id = l.id::integer
   ) k
   where c.organization_id = $1 and c.entity_id = $2 and c.version > $3 and c.version <> all($4::integer[])
     and c.operation = 'update'
     and (k.is_attribute or k.key <> 'attribute_values')`,
)

/** $2: a person. Its own answers, with those that were superseded. */
export const readOwnAnswersSql = statement(
  'read_own_answers',
  `select a.consent_type_id, a.channel, a.state, a.previous_state, a.pending, a.superseded, a.version, a.source, a.evidence,
     a.collected_at, coalesce(a.collected_at, a.at) as answered_at
   from consent_history a where a.organization_id = $1 and a.person_id = $2 order by a.version`,
)

/** $2: a person. The merged people who lead to it, with their merges. */
export const readMergedIdsSql = statement(
  'read_merged_ids',
  `select m.id, m.merged_id from merges m
   where m.organization_id = $1 and m.person_id = $2 and m.unmerged_sequence is null`,
)

/**
 * $2: the person who returns, $3: the aliases that it had, $4: the merges into it, $5: its external identifier, or
 * none, $6: the person it was merged into. Gives back the aliases and merges that still lead to $6. Returns the aliases.
 */
export const returnIdentifiersSql = statement(
  'return_identifiers',
  `with gone as (
     delete from aliases s where s.organization_id = $1 and s.external_id = any($5::text[]) and s.person_id = $6
   ), returned as (
     update merges m set person_id = $2
     where m.organization_id = $1 and m.id = any($4::integer[]) and m.person_id = $6 and m.unmerged_sequence is null
   ), given as (
     update aliases s set person_id = $2
     where s.organization_id = $1 and s.external_id = any($3::text[]) and s.person_id = $6
     returning s.external_id
   ) select g.external_id from given g`,
)

/** The first position in the list w.ids of one of these targets. */
const firstOf = (targets: string) =>
  `(select min(i.position)::integer - 1 from jsonb_array_elements_text(w.ids) with ordinality as i(id, position)
       where i.id = any(${targets}::text[]))`

/**
 * $2: the person that another one was merged into, $3: [{source_id, attribute_id, position, kept}] as `move_links_to` returned them, of
 * sources that exist, $4: the identifiers that lead to the other one again, $5: those that lead to $2, $6: the number of the merge. The
 * positions are those in the last list of targets that a user wrote. Of a link that the list lacks, because another merge brought it,
 * the position before the merge counts. What merges, unmerges and restores write of links is no write of a user. A link stays with $2 if a user has written the attribute since without the other one, or may have, as the log does not
 * tell.
 */
const placedLinks = `with moved as materialized (
     select v.source_id, v.attribute_id, v.position, v.kept, l.ctid as own, l.position as current
     from jsonb_to_recordset($3::text::jsonb) as v(source_id uuid, attribute_id integer, position integer, kept integer)
       left join lateral (
         select l.ctid, l.position from links l
         where l.organization_id = $1 and l.source_id = v.source_id and l.attribute_id = v.attribute_id
           and l.target_id = $2 offset 0
       ) l on true
   ), written as materialized (
     select m.*, w.ids, w.is_since, w.ids is null as is_unknown, ${firstOf('$4')} as other_written, ${firstOf('$5')} as own_written
     from moved m left join lateral (
       select case when c.links ? m.attribute_id::text then coalesce(c.links->m.attribute_id::text->'after', '[]') end as ids, c.sequence > $6 as is_since from changes c
       where c.organization_id = $1 and c.entity_id = m.source_id and c.operation in ('create', 'update')
         and (c.links ? m.attribute_id::text or (c.sequence > $6 and ${isEmptied}))
         and not exists (
           select from merges f where f.organization_id = $1 and f.into_id = m.source_id
             and c.version in ((f.undo->>'into_version')::integer, (f.undo->>'unmerge_version')::integer)
         )
       order by c.version desc limit 1
     ) w on true
     where m.own is not null or not exists (
       select from attributes a cross join links l
       where a.organization_id = $1 and a.id = m.attribute_id and a.cardinality = 'one'
         and l.organization_id = $1 and l.source_id = m.source_id and l.attribute_id = m.attribute_id
     )
   ), placed as materialized (
     select w.*,
       case when w.is_since then w.other_written else coalesce(w.other_written, w.position) end as other_position,
       case when w.is_since and w.is_unknown then w.current when w.is_since then w.own_written
         when w.kept is not null then coalesce(w.own_written, w.kept) end as own_position
     from written w
   )`

/** The parameters of {@link placedLinks}, $7: the person who returns. Inserts the links to $7 beside those to $2. Runs before {@link returnLinksToSql}. */
export const insertReturnedLinksSql = statement(
  'insert_returned_links',
  `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
   ${placedLinks}
   select h.organization_id, p.source_id, p.attribute_id, 0, $7::uuid, p.other_position
   from change_heads h cross join placed p
   where h.organization_id = $1 and p.other_position is not null and (p.own_position is not null or p.own is null)`,
)

/** The parameters of {@link placedLinks}, $7: the person who returns. Gives the other links back to $7. Returns how many links were given back in all. */
export const returnLinksToSql = statement(
  'return_links_to',
  `${placedLinks}, led as (
     update links l set target_id = $7, position = p.other_position from placed p
     where l.ctid = any(array(select p.own from placed p where p.other_position is not null and p.own_position is null))
       and l.ctid = p.own and l.organization_id = $1
   ), shifted as (
     update links l set position = p.own_position from placed p
     where l.ctid = any(array(select p.own from placed p where p.other_position is not null and p.own_position <> p.current))
       and l.ctid = p.own and l.organization_id = $1
   )
   select count(*)::integer as returned from placed p where p.other_position is not null`,
)

/**
 * The parameters of {@link placedLinks}. Puts the links of a source in the order of the list that a user wrote, if two of them have one
 * position: merges and restores number the links anew. Runs after {@link endMergeSql}.
 */
export const orderReturnedLinksSql = statement(
  'order_returned_links',
  `${placedLinks}, tied as materialized (
     select p.source_id, p.attribute_id, p.ids from placed p
     where p.ids is not null and exists (
       select from links l
       where l.organization_id = $1 and l.source_id = p.source_id and l.attribute_id = p.attribute_id
       having count(*) > count(distinct l.position)
     )
   ), listed as materialized (
     select t.source_id, t.attribute_id, coalesce(m.person_id, i.id::uuid) as target_id, min(i.place) as place
     from tied t cross join lateral jsonb_array_elements_text(t.ids) with ordinality as i(id, place)
       left join lateral (
         select m.person_id from merges m
         where m.organization_id = $1 and m.merged_id = i.id::uuid and m.unmerged_sequence is null
       ) m on true
     group by 1, 2, 3
   ), ordered as materialized (
     select l.ctid as own, l.position, -1 + row_number() over (
       partition by l.source_id, l.attribute_id order by coalesce(o.place, 1000000), l.position, l.target_id
     ) as place
     from tied t cross join lateral (
       select l.ctid, l.source_id, l.attribute_id, l.target_id, l.position from links l
       where l.organization_id = $1 and l.source_id = t.source_id and l.attribute_id = t.attribute_id offset 0
     ) l left join listed o
       on o.source_id = l.source_id and o.attribute_id = l.attribute_id and o.target_id = l.target_id
   )
   update links l set position = o.place from ordered o
   where l.ctid = any(array(select o.own from ordered o where o.place <> o.position)) and l.ctid = o.own
     and l.organization_id = $1`,
)

/** $2: merge, $3: the person who returned, $4: the version of its return, $5: what remains of the undo. */
export const endMergeSql = statement(
  'end_merge',
  `update merges m set unmerged_sequence = c.sequence, undo = $5::text::jsonb from changes c
   where m.organization_id = $1 and m.id = $2 and c.organization_id = $1 and c.entity_id = $3 and c.version = $4`,
)

/** $2: [{merged_id, undo}]. Replaces what the unmerge of other merges needs. */
export const updateUndoSql = statement(
  'update_undo',
  `update merges m set undo = v.undo from jsonb_to_recordset($2::text::jsonb) as v(merged_id uuid, undo jsonb)
   where m.organization_id = $1 and m.merged_id = v.merged_id and m.unmerged_sequence is null`,
)
