import { statement } from '../db/db.ts'

// PostgreSQL returns the fields of a change as one text, separated by tabs, and changes separated by line feeds. No
// field contains either: JSON escapes them, and identifiers have no control characters. Node therefore neither parses
// nor copies `before` and `after` on their way.

/**
 * The current external identifier of the entity of a change c, or the last one of a deleted or merged entity. An index
 * look-up for each change takes less time than a join, and the planner cannot replace it by reading all entities.
 */
const externalId = `case when c.entity_id is not null then coalesce((
     select e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = c.stack_id and e.id = c.entity_id
   ), (
     select case when d.operation in ('delete', 'merge') then d.before->>'external_id' end from changes d
     where d.organization_id = $1 and d.entity_id = c.entity_id order by d.version desc limit 1
   )) end`
const stackKey = `case when c.stack_id > 0 then (
     select s.key from stacks s where s.organization_id = $1 and s.id = c.stack_id
   ) end`

/**
 * Whether the entity of a change c is being erased. A very long log is blanked in several transactions, and reads see
 * it as erased from the first one on. The list is nearly always empty.
 */
const isErasing = `c.entity_id = any(array(
     select x.entity_id from erasures x where x.organization_id = $1 and x.completed_at is null
   ))`

/**
 * A value of a change c. If the change replaced links, its attribute values are left out, because change-json.ts prints
 * them together with the links.
 */
const valuesOf = (side: 'before' | 'after', erased: string) =>
  `case when ${isErasing} then ${erased} when c.links is null then c.${side} else c.${side} - 'attribute_values' end`
const attributesOf = (side: 'before' | 'after') =>
  `case when c.links is not null and not ${isErasing} then c.${side}->'attribute_values' end`

const fields = [
  'c.sequence',
  'c.at',
  'c.subject',
  'c.stack_id',
  'coalesce(c.entity_id::text, c.definition_id::text)',
  stackKey,
  'c.operation',
  'c.version',
  valuesOf('before', 'null'),
  valuesOf('after', "'{}'"),
  `case when not ${isErasing} then c.links end`,
  attributesOf('before'),
  attributesOf('after'),
  externalId,
  'c.actor',
  'c.request_id',
  'c.merge_id',
]
const lineOf = (names: string[]) => `concat(${names.join(`, E'\\t', `)})`

/**
 * $2: relationships, $3: targets, by position. Returns the relationships with the current names of their targets, by
 * uuid. A merged person has the name of the survivor, a deleted target its last name, and an erased one is marked as
 * erased. A target with a name of its own is that name alone. Almost every target exists, so merges and the log are
 * looked up only for the others.
 */
export const readLinkNamesSql = statement(
  'read_link_names',
  `select a.id, a.key, a.cardinality = 'many' as is_many, a.target_stack_id,
     jsonb_object_agg(v.target_id, case when e.external_id is not null then to_jsonb(e.external_id) else jsonb_build_object(
       'id', p.id, 'external_id', case when e.id is null then coalesce(s.external_id, d.external_id) end,
       'is_erased', coalesce(d.is_erased, false)
     ) end) filter (where v.target_id is not null)::text as targets
   from unnest($2::integer[], $3::uuid[]) as v(attribute_id, target_id)
     join attributes a on a.organization_id = $1 and a.id = v.attribute_id
     left join lateral (
       select e.id, e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = a.target_stack_id and e.id = v.target_id offset 0
     ) e on true
     left join lateral (
       select m.person_id from merges m
       where m.organization_id = $1 and m.merged_id = v.target_id and m.unmerged_sequence is null offset 0
     ) m on e.id is null and a.target_stack_id = 0
     cross join lateral (select coalesce(m.person_id, v.target_id) as id) p
     left join lateral (
       select s.id, s.external_id from entities s
       where s.organization_id = $1 and s.stack_id = a.target_stack_id and s.id = m.person_id offset 0
     ) s on m.person_id is not null
     left join lateral (
       select d.before->>'external_id' as external_id, d.operation = 'erase' as is_erased from changes d
       where d.organization_id = $1 and d.entity_id = p.id order by d.version desc limit 1
     ) d on e.id is null and s.id is null
   group by a.id, a.key, a.cardinality, a.target_stack_id`,
)

/**
 * The size of a value. A compressed value counts eight times, because its text is longer and is not decompressed for
 * this.
 */
const sizeOf = (column: string) =>
  `coalesce(pg_column_size(${column}) * case when pg_column_compression(${column}) is null then 1 else 8 end, 0)`
const sizeOfChange = `200 + ${['c.before', 'c.after', 'c.links'].map(sizeOf).join(' + ')}`

const columns = `c.sequence, c.at, c.subject, c.stack_id, c.entity_id, c.definition_id, c.operation, c.version, c.before,
     c.after, c.links, c.actor, c.request_id, c.merge_id`

/** The bytes of the changes before each one, in the order of the page. */
const bytesBefore = (order: string, size = sizeOfChange) =>
  `sum(${size}) over (order by ${order} rows unbounded preceding) - (${size}) as bytes_before`

/**
 * The number of matched changes, and the lines, number and last sequence of those whose sizes add up to the limit. The
 * last one may exceed it.
 */
const pageOf = (order: string, maxBytes: string, matched: string, line = lineOf(fields)) => {
  const fits = `filter (where c.bytes_before < ${maxBytes})`
  return `select count(*)::integer as matched, (count(*) ${fits})::integer as count, max(c.sequence) ${fits} as last,
     string_agg(${line}, E'\\n' order by c.${order}) ${fits} as lines
   from (${matched}) c`
}

const inRange = 'c.organization_id = $1 and c.sequence > $2::bigint and c.sequence <= $3::bigint'

const isSelected = `case when c.subject <> 'entity' then c.subject = any($9::text[])
         when c.stack_id = 0 then $6::boolean
         else $7::boolean and ($8::integer[] is null or c.stack_id = any($8)) end
       and ($10::text[] is null or c.operation = any($10))`

/**
 * A page of the selected changes c. $2: after this number, $3: up to this one, $4: limit, $5: maximum bytes, $6:
 * whether people match, $7: whether records match, $8: stacks of the records or null for all, $9: other subjects, $10:
 * operations or null for all.
 */
const selectedPage = (source: string, { where = '', size = sizeOfChange, line = lineOf(fields) } = {}) =>
  pageOf(
    'sequence',
    '$5',
    `select ${columns}, ${bytesBefore('c.sequence', size)}
     from ${source}
     where ${where}${isSelected}
     order by c.sequence limit $4`,
    line,
  )

/** A statement of {@link selectedPage} that also returns the head of the same moment. */
const feed = (name: string, page: string, further = '') =>
  statement(
    name,
    `select h.sequence as head, h.log_id, page.*${further}
   from change_heads h left join lateral (${page}) page on true
   where h.organization_id = $1`,
  )

/** Scans the range of the primary key from $2 to $3. */
export const readChangesSql = feed('read_changes', selectedPage('changes c', { where: `${inRange}\n       and ` }))

/** The maximum number of changes of an index that one statement tests. */
const maxCandidates = 5_000

/**
 * Reads the changes under the condition of a partial index: those between $2 and $3, and no more than `maxCandidates`.
 * If there may be more, `cut` is the number of the last one. It is null if the page is full.
 */
const readIndexedSql = (name: string, condition: string) =>
  feed(
    name,
    selectedPage(`(
       select ${columns} from changes c where ${inRange} and ${condition}
       order by c.sequence limit ${maxCandidates}
     ) c`),
    `, case when page.matched < $4 then (
       select c.sequence from changes c where ${inRange} and ${condition}
       order by c.sequence offset ${maxCandidates - 1} limit 1
     ) end as cut`,
  )

/** {@link readIndexedSql} for changes of neither a person nor a record. */
export const readDefinitionChangesSql = readIndexedSql('read_definition_feed', 'c.entity_id is null')

/** {@link readIndexedSql} for all operations other than create and update. */
export const readRareOperationsSql = readIndexedSql('read_rare_feed', `c.operation not in ('create', 'update')`)

/** Reads all changes of the people and records $11. */
export const readEntityChangesSql = feed(
  'read_entity_feed',
  selectedPage(`unnest($11::uuid[]) as v(id) cross join lateral (
       select ${columns} from changes c where ${inRange} and c.entity_id = v.id order by c.version offset 0
     ) c`),
)

export const segmentsFollowerName = 'segments'

const segmentsFollower = `followers f on f.organization_id = $1 and f.name = '${segmentsFollowerName}' and f.id = 0`

/** The maximum number of entries and exits of one segment that one statement reads. */
const maxMoves = 2_000

/** The people who entered and left the segments $11 by a change c. */
const segmentsOfChange = `(
     select jsonb_build_object('entered', coalesce(jsonb_agg(x.entry order by x.key) filter (where x.entered), '[]'),
       'left', coalesce(jsonb_agg(x.entry order by x.key) filter (where not x.entered), '[]'),
       'reason', case when c.subject = 'segment' then 'time' else 'change' end)
     from (
       select g.key, s.entered, jsonb_build_object('key', g.key, 'people', jsonb_agg(s.person_id order by s.person_id)) as entry
       from segments g cross join lateral (
         select s.entered, s.person_id from segment_changes s
         where s.organization_id = $1 and s.segment_id = g.id and s.sequence = c.sequence offset 0
       ) s
       where g.organization_id = $1 and g.id = any($11::integer[])
       group by g.key, s.entered
     ) x
   )`

/**
 * As {@link readChangesSql}, for the changes by which a person entered or left a segment of $11. They include the
 * changes of a segment by which the clock has moved people. The head is the position of the follower, which does not
 * know later changes yet, and `newest` is the head of the log. `since` is null if the members of a segment are being
 * computed again. `cut` is the last number that was read, if there may be more. Each change and its people are looked
 * up, because PostgreSQL would join whole ranges without statistics.
 */
export const readSegmentChangesSql = statement(
  'read_segment_changes',
  `select h.sequence as newest, least(f.sequence, h.sequence) as head, h.log_id, (
     select case when bool_and(g.since is not null) then max(g.since) end from segments g
     where g.organization_id = $1 and g.id = any($11)
   ) as since, r.cut, page.*
   from change_heads h join ${segmentsFollower} cross join lateral (
     select min(s.sequence) as cut from unnest($11::integer[]) as g(id) cross join lateral (
       select s.sequence from segment_changes s
       where s.organization_id = $1 and s.segment_id = g.id and s.sequence > $2::bigint and s.sequence <= $3::bigint
       order by s.sequence offset ${maxMoves - 1} limit 1
     ) s
   ) r left join lateral (${selectedPage(
     `(
       select s.sequence, count(*) as people from segment_changes s
       where s.organization_id = $1 and s.segment_id = any($11) and s.sequence > $2::bigint
         and s.sequence <= least($3::bigint, f.sequence, r.cut)
       group by s.sequence
     ) m cross join lateral (
       select ${columns} from changes c where c.organization_id = $1 and c.sequence = m.sequence offset 0
     ) c`,
     { size: `${sizeOfChange} + 40 * m.people`, line: lineOf([...fields, segmentsOfChange]) },
   )}) page on true
   where h.organization_id = $1`,
)

/** The feeds that read an index, as {@link readChangesSql}. */
export const readIndexSql = {
  segments: readSegmentChangesSql,
  definitions: readDefinitionChangesSql,
  'rare operations': readRareOperationsSql,
  entities: readEntityChangesSql,
}

/** The head in the format of {@link readSegmentChangesSql}. */
export const readSegmentHeadSql = statement(
  'read_segment_head',
  `select h.sequence as newest, least(f.sequence, h.sequence) as sequence, h.log_id
   from change_heads h join ${segmentsFollower} where h.organization_id = $1`,
)

/** $2: sequences, $3: maximum bytes. Returns the changes in the order of $2, and their number. */
export const readChangesOfSql = statement(
  'read_changes_of',
  pageOf(
    'position',
    '$3',
    `select ${columns}, v.position, ${bytesBefore('v.position')}
     from unnest($2::bigint[]) with ordinality as v(sequence, position)
       join changes c on c.organization_id = $1 and c.sequence = v.sequence`,
  ),
)

/**
 * $2: entity, $3: stack, $4: before this version, $5: limit, $6: maximum bytes. Returns whether the log has the entity,
 * and its changes, newest first.
 */
export const readHistorySql = statement(
  'read_history',
  `select exists (
       select from changes c where c.organization_id = $1 and c.entity_id = $2 and c.stack_id = $3
     ) as found, page.*
   from (${pageOf(
     'version desc',
     '$6',
     `select ${columns}, ${bytesBefore('c.version desc')}
     from changes c
     where c.organization_id = $1 and c.entity_id = $2 and c.stack_id = $3 and c.version < $4
     order by c.version desc limit $5`,
   )}) page`,
)

/**
 * $2: an identifier, $3: the internal identifiers that it may be. Returns the people and records of any stack that have
 * it, possibly as an alias, or that had it before a deletion, a merge or a rename.
 */
export const findEntitiesSql = statement(
  'find_entities_by_any_name',
  `select array(
     select v.id from unnest($3::uuid[]) as v(id)
     union
     select e.id from stacks_of_all s cross join lateral (
       select e.id from entities e where e.organization_id = $1 and e.stack_id = s.id and e.external_id = $2 offset 0
     ) e
     union
     select a.person_id from aliases a where a.organization_id = $1 and a.external_id = $2
     union
     select c.entity_id from stacks_of_all s cross join lateral (
       select c.entity_id from changes c
       where c.organization_id = $1 and c.stack_id = s.id and (c.before->>'external_id') collate "C" = $2
         and c.before->>'external_id' is not null offset 0
     ) c
   ) as ids`.replaceAll(
    'stacks_of_all s',
    `(
       select 0 as id union all select s.id from stacks s where s.organization_id = $1
     ) s`,
  ),
)

/**
 * $2: an alias. Returns the person whose log has the beginning of the alias's past. That is the person that had the
 * name before a merge, or with which the alias came, or else the one to which the alias leads.
 */
export const findFirstBearerSql = statement(
  'find_first_bearer',
  `select coalesce((
     select m.merged_id from (
       select c.entity_id, c.sequence, c.operation from changes c
       where c.organization_id = $1 and c.stack_id = 0 and (c.before->>'external_id') collate "C" = $2
         and c.before->>'external_id' is not null offset 0
     ) c join merges m on m.organization_id = $1 and m.merged_id = c.entity_id and m.unmerged_sequence is null
     where c.operation = 'merge' and m.person_id = s.person_id
     order by c.sequence desc limit 1
   ), (
     select m.merged_id from merges m
     where m.organization_id = $1 and m.id = s.merge_id and m.unmerged_sequence is null and m.person_id = s.person_id
   ), s.person_id) as id
   from aliases s where s.organization_id = $1 and s.external_id = $2`,
)

/** $2: keys. */
export const findStacksSql = statement(
  'find_stacks',
  'select s.id, s.key from stacks s where s.organization_id = $1 and s.key = any($2::text[])',
)

/**
 * $2: time. Returns the highest number of a change whose time is not after $2; 0 if there is none. Times follow the
 * numbers, unless a clock was set back or the clocks of several hosts differ. The head has the maximum by which they
 * are then earlier. A binary search over the numbers, and in that case a second one, find the range that contains the
 * last such change. Only this range is read.
 */
export const readSequenceAtSql = statement(
  'read_sequence_at',
  `with recursive search(bound, low, high) as (
     select b.bound, 0::bigint, h.sequence
     from change_heads h cross join unnest(case when h.max_setback = '0' then array[$2::timestamptz]
       else array[$2::timestamptz, $2::timestamptz + h.max_setback] end) as b(bound)
     where h.organization_id = $1
     union all
     select s.bound, case when c.at <= s.bound then m.middle else s.low end,
       case when c.at <= s.bound then s.high else m.middle - 1 end
     from search s cross join lateral (select (s.low + s.high + 1) / 2 as middle offset 0) m
       cross join lateral (
         select c.at from changes c where c.organization_id = $1 and c.sequence = m.middle offset 0
       ) c
     where s.low < s.high
   ), found as (
     select min(s.low) as first, max(s.low) as last from search s where s.low = s.high
   )
   select greatest(f.first, coalesce((
     select c.sequence from changes c
     where c.organization_id = $1 and c.sequence > f.first and c.sequence <= f.last and c.at <= $2::timestamptz
     order by c.sequence desc limit 1
   ), 0)) as sequence from found f`,
)

/** $2: a log_id. */
export const renewLogIdSql = statement(
  'renew_log_id',
  'update change_heads set log_id = $2 where organization_id = $1 returning sequence',
)

export const readHeadSql = statement(
  'read_head',
  `select h.sequence, h.log_id from change_heads h where h.organization_id = $1`,
)

/**
 * The heads of all organizations with waiting requests, the positions of their segments, and their newest erasures. A
 * new erasure discards the changes in memory. $1: organizations.
 */
export const readHeadsSql = statement(
  'read_heads',
  `select h.organization_id, h.sequence, h.log_id,
     (select max(x.id) from erasures x where x.organization_id = h.organization_id) as erasure, (
     select f.sequence from followers f where f.organization_id = h.organization_id and f.name = '${segmentsFollowerName}' and f.id = 0
   ) as segments
   from change_heads h where h.organization_id = any($1::integer[])`,
)
