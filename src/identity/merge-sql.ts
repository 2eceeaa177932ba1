import { statement } from '../db/db.ts'
import { exactTimeText } from '../db/time-text.ts'

/**
 * $2: [{position, external_id | id}]. Returns the person that each identifier leads to, directly or as an alias or a
 * merged identifier. An identifier that leads to no person has no row.
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

/** $2: a person. The number of links to the person. */
export const countLinksToSql = statement(
  'count_links_to',
  'select count(*)::integer as count from links l where l.organization_id = $1 and l.target_id = $2',
)

/** $2: people. The number of lists with links that were written to these people and lead to others. */
export const countListsOfSql = statement(
  'count_lists_of',
  `select count(*)::integer as count from (
     select distinct l.source_id, l.attribute_id from links l where l.organization_id = $1 and l.written_id = any($2::uuid[])
   ) l`,
)

/** Selects the person to whom an identifier leads by the merges that are not undone. */
const leadOf = (id: string) => `
       select coalesce((
         select m.person_id from merges m where m.organization_id = $1 and m.merged_id = ${id} and m.unmerged_sequence is null
       ), ${id}) as id offset 0
     `

/**
 * $2: people whose links a merge or its undoing leads elsewhere, $3: the person to whom these links led before, $4:
 * limit of lists. Computes the targets of links again, from the written targets and the merges that are not undone. If
 * several links of a list lead to one person, the first one shows. Returns the number of lists, which is less than the
 * limit if none is left. Runs after the merge is stored or ended.
 */
export const leadLinksSql = statement(
  'lead_links',
  `with led as materialized (
     select p.id as written_id, d.id from unnest($2::uuid[]) as p(id) cross join lateral (${leadOf('p.id')}) d
   ), lists as materialized (
     select l.source_id, l.attribute_id from (
       (select l.source_id, l.attribute_id from links l
       where l.organization_id = $1 and l.target_id = $3 and $3 = any($2::uuid[]) limit $4)
       union all
       select l.source_id, l.attribute_id from led d cross join lateral (
         (select l.source_id, l.attribute_id from links l
         where l.organization_id = $1 and l.written_id = d.written_id and l.target_id = $3 and d.id <> $3 limit $4)
         union all
         (select l.source_id, l.attribute_id from links l left join lateral (
           select true as leads from links k
           where k.organization_id = $1 and k.source_id = l.source_id and k.attribute_id = l.attribute_id and k.target_id = d.id limit 1
         ) k on true
         where l.organization_id = $1 and l.written_id = d.written_id and l.target_id is null and k.leads is null limit $4)
       ) l
     ) l
     group by l.source_id, l.attribute_id limit $4
   ), placed as materialized (
     select l.place, l.target_id, l.written_id, d.id,
       case when row_number() over (partition by l.source_id, l.attribute_id, d.id order by l.position) = 1 then d.id end as leads_to
     from lists t cross join lateral (
       select l.ctid as place, l.source_id, l.attribute_id, l.position, l.target_id, coalesce(l.written_id, l.target_id) as written_id
       from links l
       where l.organization_id = $1 and l.source_id = t.source_id and l.attribute_id = t.attribute_id offset 0
     ) l cross join lateral (${leadOf('l.written_id')}) d
   ), moved as (
     update links l set target_id = p.leads_to, written_id = nullif(p.written_id, p.leads_to)
     from placed p
     where l.ctid = any(array(select m.place from placed m where m.target_id is distinct from m.leads_to)) and l.ctid = p.place
       and l.organization_id = $1
   )
   select count(*)::integer as count from lists`,
)

/** $2: a merge, $3: the people whose links are still to be moved, or null for none. */
export const storeMovingSql = statement(
  'store_moving',
  'update merges m set moving = $3::uuid[] where m.organization_id = $1 and m.id = $2',
)

/**
 * $2: a merge. Returns the people whose links are still to be moved, and the person to whom these links lead until
 * then. Runs under the lock of the head.
 */
export const readMovingSql = statement(
  'read_moving',
  `select m.moving as people, case when m.unmerged_sequence is null then m.merged_id else m.into_id end as "from" from merges m
   where m.organization_id = $1 and m.id = $2 and m.moving is not null`,
)

/** The merges of all organizations with links that are still to be moved. */
export const listUnfinishedMergesSql = statement(
  'list_unfinished_merges',
  'select m.organization_id, m.id as merge_id from merges m where m.moving is not null order by m.organization_id, m.id',
)

/**
 * $2: the merged person, $3: the survivor. Moves the aliases of the merged person, and the people merged into it, to
 * the survivor. Returns them, with the emails and phones of these people.
 */
export const moveIdentifiersSql = statement(
  'move_identifiers',
  `with aliased as (
     update aliases s set person_id = $3 where s.organization_id = $1 and s.person_id = $2 returning s.external_id
   ), merged as (
     update merges m set person_id = $3
     where m.organization_id = $1 and m.person_id = $2 and m.unmerged_sequence is null returning m.id, m.email_key, m.mobile_key
   )
   select array(select a.external_id from aliased a order by 1) as aliases, array(select m.id from merged m order by 1) as merges,
     array(select m.email_key from merged m where m.email_key is not null order by 1) as emails,
     array(select m.mobile_key from merged m where m.mobile_key is not null order by 1) as mobiles`,
)

/**
 * $2: merged, $3: into, $4: the version of the merge, $5: the time, $6: the record that unmerge needs, $7: email and
 * $8: phone that lead to the survivor, as keys. Runs under the lock of the head.
 */
export const insertMergeSql = statement(
  'insert_merge',
  `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo, email_key, mobile_key)
   select c.organization_id, 1 + coalesce((
     select m.id from merges m where m.organization_id = $1 order by m.id desc limit 1
   ), 0), $2::uuid, $3::uuid, $3::uuid, c.sequence, $5::timestamptz, $6::text::jsonb, $7, $8
   from changes c where c.organization_id = $1 and c.entity_id = $2 and c.version = $4
   returning id`,
)

/**
 * $2: merge, $3: the merged person and the survivor, $4: the versions that the merge or unmerge gave them. One may be
 * null.
 */
export const numberMergeSql = statement(
  'number_merge',
  `update changes c set merge_id = $2 where c.organization_id = $1 and c.ctid = any(array(
     select k.ctid from unnest($3::uuid[], $4::integer[]) as v(id, version) cross join lateral (
       select k.ctid from changes k where k.organization_id = $1 and k.entity_id = v.id and k.version = v.version offset 0
     ) k
   ))`,
)

/**
 * $2: [{position, person_id, consent_type_id, channel}]. Returns the version and the number of the last answer that was
 * not superseded.
 */
export const readAnswerVersionsSql = statement(
  'read_answer_versions',
  `select v.position, h.version, c.sequence
   from jsonb_to_recordset($2::text::jsonb) as v(position integer, person_id uuid, consent_type_id integer, channel text)
     cross join lateral (
       select h.version from consent_history h
       where h.organization_id = $1 and h.person_id = v.person_id and h.consent_type_id = v.consent_type_id
         and h.channel = v.channel and not h.superseded
       order by h.version desc limit 1
     ) h cross join lateral (
       select c.sequence from changes c
       where c.organization_id = $1 and c.entity_id = v.person_id and c.version = h.version offset 0
     ) c`,
)

const merge = 'm.id, m.merged_id, m.into_id, m.person_id, m.sequence, m.undo'

/**
 * $2: the alias that names a merged person, or null, $3: its internal identifier, or null, $4: the survivor. An alias
 * that the person got from an earlier match names the merge that brought it, and so does the name that the survivor
 * took from the merged person.
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
     where n.organization_id = $1 and n.person_id = $4 and n.unmerged_sequence is null
       and (n.undo->'aliases' ? $2 or n.undo->'other'->'columns'->>'external_id' = $2)
     order by n.id desc limit 1
   ))`,
)

/** $2: a person. The merges into it that are not undone, in order. */
export const readMergesIntoSql = statement(
  'read_merges_into',
  `select ${merge} from merges m
   where m.organization_id = $1 and m.into_id = $2 and m.unmerged_sequence is null order by m.id`,
)

/**
 * $2: a person, $3: after this number. Whether the retention of the log removed the values of a user's change to the
 * person since then. The values that such a change wrote are unknown.
 */
export const readIsEmptiedSql = statement(
  'read_is_emptied',
  `select exists (
     select from changes c
     where c.organization_id = $1 and c.entity_id = $2 and c.sequence > $3 and c.operation = 'update' and c.after = '{}'
       and c.links is null and c.sequence <= (
         select f.sequence from followers f where f.organization_id = $1 and f.name = 'retention' and f.id = 0
       )
   ) as is_emptied`,
)

/**
 * $2: a person, $3: after this version. Returns the fields and attribute values that were written since, except by
 * merges. A write of a phone number counts as a write of the prefix, because the number is valid only with that prefix.
 */
export const readWrittenKeysSql = statement(
  'read_written_keys',
  `select distinct k.key, k.is_attribute from changes c cross join lateral (
     select f.key, false as is_attribute from jsonb_object_keys(c.after) as f(key)
     union all
     select f.key, true from jsonb_object_keys(coalesce(c.after->'attribute_values', '{}')) as f(key)
     union all
     select a.key, true from jsonb_object_keys(coalesce(c.links, '{}')) as l(id)
       join attributes a on a.organization_id = $1 and a.id = l.id::integer
     union all
     select 'mobile_prefix', false where c.after->>'mobile_number' is not null
   ) k
   where c.organization_id = $1 and c.entity_id = $2 and c.version > $3 and c.merge_id is null
     and c.operation = 'update'
     and (k.is_attribute or k.key <> 'attribute_values')`,
)

/** $2: a person. The answers that the person gave itself, including superseded ones. */
export const readOwnAnswersSql = statement(
  'read_own_answers',
  `select a.consent_type_id, a.channel, a.state, a.previous_state, a.pending, a.superseded, a.undated, a.source, a.evidence,
     ${exactTimeText('a.collected_at')} as collected_at, ${exactTimeText('coalesce(a.collected_at, a.at)')} as answered_at, c.sequence
   from consent_history a cross join lateral (
     select c.sequence from changes c where c.organization_id = $1 and c.entity_id = $2 and c.version = a.version offset 0
   ) c
   where a.organization_id = $1 and a.person_id = $2 order by a.version`,
)

/** $2: merges. Returns the people whom they merged, except by undone merges. */
export const readMergedIdsSql = statement(
  'read_merged_ids',
  `select m.merged_id from merges m
   where m.organization_id = $1 and m.id = any($2::integer[]) and m.unmerged_sequence is null`,
)

/**
 * $2: the person who returns, $3: the aliases that it had, $4: the merges into it, $5: its external identifier, or
 * none, $6: the person it was merged into. Gives back the aliases and merges that still lead to $6. Returns these
 * aliases, and the emails and phones of the merges and of the one that ends, except those that the survivor had itself
 * before.
 */
export const returnIdentifiersSql = statement(
  'return_identifiers',
  `with gone as (
     delete from aliases s where s.organization_id = $1 and s.external_id = any($5::text[]) and s.person_id = $6
   ), returned as (
     update merges m set person_id = $2
     where m.organization_id = $1 and m.id = any($4::integer[]) and m.person_id = $6 and m.unmerged_sequence is null
     returning m.email_key, m.mobile_key
   ), given as (
     update aliases s set person_id = $2
     where s.organization_id = $1 and s.external_id = any($3::text[]) and s.person_id = $6
     returning s.external_id
   ), led as (
     select r.email_key, r.mobile_key from returned r
     union all
     select case when not m.undo->'filled'->'columns' ? 'email' then m.email_key end,
       case when not m.undo->'filled'->'columns' ? 'mobile_number' then m.mobile_key end
     from merges m where m.organization_id = $1 and m.merged_id = $2 and m.unmerged_sequence is null
   )
   select array(select g.external_id from given g order by 1) as aliases,
     array(select l.email_key from led l where l.email_key is not null order by 1) as emails,
     array(select l.mobile_key from led l where l.mobile_key is not null order by 1) as mobiles`,
)

/** $2: [{id, email_key, mobile_key}]. Stores the emails and phones of merged people that now lead to the survivor. */
export const storeAddressesSql = statement(
  'store_merged_addresses',
  `update merges m set email_key = v.email_key, mobile_key = v.mobile_key
   from jsonb_to_recordset($2::text::jsonb) as v(id integer, email_key text, mobile_key text)
   where m.organization_id = $1 and m.id = v.id`,
)

/** $2: merge, $3: the person who returned, $4: the version of its return, $5: the rest of the undo record. */
export const endMergeSql = statement(
  'end_merge',
  `update merges m set unmerged_sequence = c.sequence, undo = $5::text::jsonb, email_key = null, mobile_key = null from changes c
   where m.organization_id = $1 and m.id = $2 and c.organization_id = $1 and c.entity_id = $3 and c.version = $4`,
)

/** $2: [{merged_id, undo}]. Replaces the undo records of other merges. */
export const updateUndoSql = statement(
  'update_undo',
  `update merges m set undo = v.undo from jsonb_to_recordset($2::text::jsonb) as v(merged_id uuid, undo jsonb)
   where m.organization_id = $1 and m.merged_id = v.merged_id and m.unmerged_sequence is null`,
)
