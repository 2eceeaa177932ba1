import { channels, channelTable } from '../../channels.ts'
import { statement } from '../../db/db.ts'
import { profileTexts } from '../../profile-fields.ts'

// An erasure deletes rows and blanks the log. The numbers, times, operations and versions of changes stay, and so do the hashes of
// the ledger: the log has no gaps, and the ledger still proves that nothing else was removed.

/** $2: ids. Returns the last change of each entity that the log has. */
export const readLastChangesSql = statement(
  'read_last_changes',
  `select c.entity_id as id, c.stack_id, c.version, c.operation from unnest($2::uuid[]) as v(id) cross join lateral (
     select c.entity_id, c.stack_id, c.version, c.operation from changes c
     where c.organization_id = $1 and c.entity_id = v.id order by c.version desc limit 1
   ) c`,
)

const identifying = `array['external_id', 'email', 'mobile_prefix', 'mobile_number']`
const identifiersOf = (values: string) =>
  `jsonb_build_object('external_id', ${values}->'external_id', 'email', ${values}->'email',
     'mobile_prefix', ${values}->'mobile_prefix', 'mobile_number', ${values}->'mobile_number')`

/**
 * $2: ids. Returns the identifiers that changes wrote, in the order of the versions. `is_given`: a merge of another person gave them, or
 * its undoing took them again. `is_own`: a write of the entity itself has those in `after`.
 */
export const readLoggedIdentifiersSql = statement(
  'read_logged_identifiers',
  `select c.stack_id, c.entity_id as id, ${identifiersOf('c.before')} as before, ${identifiersOf('c.after')} as after,
     c.operation in ('create', 'update') as is_own, exists (
       select from merges m
       where m.organization_id = $1 and m.into_id = c.entity_id and m.unmerged_sequence is not null and m.merged_id <> all($2::uuid[])
         and c.version in ((m.undo->>'into_version')::integer, (m.undo->>'unmerge_version')::integer)
     ) as is_given,
     c.after ?| array['mobile_prefix', 'mobile_number'] as is_mobile_written
   from changes c
   where c.organization_id = $1 and c.entity_id = any($2::uuid[]) and (c.before ?| ${identifying} or c.after ?| ${identifying})
   order by c.entity_id, c.version`,
)

/** $2: ids. */
export const readAliasesOfSql = statement(
  'read_aliases_of',
  'select a.external_id from aliases a where a.organization_id = $1 and a.person_id = any($2::uuid[])',
)

/** $2: names. Locks the followers that hold what they have read in memory. While the locks are held, they store nothing. */
export const lockFollowersSql = statement(
  'lock_followers_of_erasure',
  `select f.name, f.id from followers f where f.organization_id = $1 and f.name = any($2::text[])
   order by f.name, f.id for update`,
)

/** $2: people. Takes the salts of the answers, without which a hash tells nothing. Runs before the answers are deleted. */
export const eraseSaltsSql = statement(
  'erase_salts',
  `with answered as materialized (
     select c.sequence, h.consent_type_id, h.channel
     from unnest($2::uuid[]) as v(id) cross join lateral (
       select h.version, h.consent_type_id, h.channel from consent_history h
       where h.organization_id = $1 and h.person_id = v.id offset 0
     ) h cross join lateral (
       select c.sequence from changes c
       where c.organization_id = $1 and c.entity_id = v.id and c.version = h.version offset 0
     ) c
   ), gone as (
     update ledger_entries e set salt = null from answered a
     where e.organization_id = $1 and e.sequence = a.sequence and e.consent_type_id = a.consent_type_id
       and e.channel = a.channel and e.salt is not null
     returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: people. */
export const deleteAnswersSql = statement(
  'delete_answers',
  `with gone as (
     delete from consent_history h where h.organization_id = $1 and h.person_id = any($2::uuid[]) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: [{id, after, until}]. Takes the values of the entities' own changes. Returns the numbers of the changes. */
export const blankChangesSql = statement(
  'blank_changes',
  `with own as materialized (
     select c.ctid from jsonb_to_recordset($2::text::jsonb) as v(id uuid, after integer, until integer) cross join lateral (
       select c.ctid from changes c
       where c.organization_id = $1 and c.entity_id = v.id and c.version > v.after and c.version <= v.until offset 0
     ) c
   ), blanked as (
     update changes c set before = null, after = '{}', links = null
     where c.organization_id = $1 and c.ctid = any(array(select o.ctid from own o))
       and (c.before is not null or c.after is distinct from '{}'::jsonb or c.links is not null)
     returning c.sequence
   ) select coalesce(array_agg(b.sequence), '{}')::float8[] as sequences from blanked b`,
)

/** $2: an entity, $3: after this version, $4: limit. The version at which a set of this many changes ends; null after the last one. */
export const readEndOfSetSql = statement(
  'read_end_of_set',
  `select max(c.version) as version from (
     select c.version from changes c
     where c.organization_id = $1 and c.entity_id = $2 and c.version > $3::integer order by c.version limit $4
   ) c`,
)

/** $2: ids, $3: limit. The number of their changes, up to the limit. */
export const countChangesOfSql = statement(
  'count_changes_of',
  `select count(*)::integer as count from (
     select from changes c where c.organization_id = $1 and c.entity_id = any($2::uuid[]) limit $3
   ) c`,
)

/**
 * The rows c of the log that a query `without` has by ctid. Joined by number alone, a generic plan hashed the whole log of the
 * organization: two seconds with two million changes. A row that retention empties meanwhile is left as it is then.
 */
const rowsOfWithout = `c.organization_id = $1 and c.ctid = any(array(select w.ctid from without w)) and c.sequence = w.sequence`

const textNames = `array[${profileTexts.map(name => `'${name}'`).join(', ')}]`

/** Whether the value of a key of change q came with a merge: the merged person had it, and the survivor did not. */
const isGiven = (key: string, value: string) =>
  ['given', 'filled'].map(side => `coalesce(q.${side}->'attribute_values'->${key} @> ${value}, false)`).join(' and ') +
  ` and not coalesce(q.own->'attribute_values'->${key} @> ${value}, false)`

/** The attribute values of a change q without those of a merge, see {@link withoutFilled}. */
const attributesWithoutFilled = (logged: string, isPartial: string) =>
  `coalesce((
       select jsonb_object_agg(a.key, case
         when ${isPartial} and jsonb_typeof(a.value) = 'array' and q.filled->'attribute_values' ? a.key then (
           select coalesce(jsonb_agg(x.value order by x.position), 'null') from jsonb_array_elements(a.value)
             with ordinality as x(value, position)
           where not (${isGiven('a.key', 'x.value')})
         ) else a.value end)
       from jsonb_each(${logged}->'attribute_values') as a(key, value)
       where not (q.filled->'attribute_values' ? a.key and coalesce(q.given->'attribute_values'->a.key = a.value
         or (q.given->'attribute_values' ? a.key and a.value = 'null'), false))
     ), '{}')`

/** The entries of `consents` of a change q that are not answers of the merged person. An entry before a change has no time. */
const consentsWithoutFilled = (logged: string) =>
  `coalesce((
       select jsonb_agg(x.value order by x.position) from jsonb_array_elements(${logged}->'consents')
         with ordinality as x(value, position)
       where x.value->>'state' is null or not q.taken @> jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
         'consent_type_id', x.value->'consent_type_id', 'channel', x.value->'channel', 'state', x.value->'state',
         'answered_at', x.value->'answered_at')))
     ), '[]')`

const flagChannels = `(values ${channels.map(channel => `('${channelTable[channel].flag}', '${channel}')`).join(', ')}, ('push_notification_consent', null))
         as f(name, channel)`
const isFlagFilled = `q.filled ? f.name and (q.given->f.name = q.filled->f.name
         or q.taken @> jsonb_build_array(jsonb_build_object('channel', f.channel)))`

/**
 * The values `logged` of a change q without those that a merge filled with the values q.given: q.filled are the survivor's after the merge,
 * and q.own before it. A field becomes null. An attribute value is removed with its key, which may be the client's own text, and so is its
 * removal. An array loses the elements that the survivor did not have. `isPartial` says whether arrays and flags may have what the merge
 * gave: the change before it was written again, or one with the whole state. The own writes of the survivor stay.
 */
const withoutFilled = (logged: string, isPartial: string) =>
  `(${logged} - array(
       select f.name from ${flagChannels} where ${isFlagFilled} and (q.is_fill or (${isPartial} and ${logged}->f.name = q.filled->f.name))
     )) || coalesce((
       select jsonb_object_agg(f.name, q.own->f.name) from ${flagChannels}
       where q.is_whole and not q.is_fill and ${isFlagFilled} and ${logged}->f.name = q.filled->f.name
     ), '{}') || coalesce((
       select jsonb_object_agg(g.key, 'null'::jsonb) from jsonb_each(q.given) as g(key, value)
       where g.key = any(${textNames}) and q.filled ? g.key and ${logged}->g.key = g.value
     ), '{}') || case when jsonb_typeof(${logged}->'attribute_values') = 'object' then jsonb_build_object(
       'attribute_values', ${attributesWithoutFilled(logged, isPartial)}) else '{}' end
     || case when jsonb_typeof(${logged}->'consents') = 'array' then jsonb_build_object(
       'consents', ${consentsWithoutFilled(logged)}) else '{}' end`

/**
 * The links of a change q without those that came with a merge: on the side `after` if `isAfter`, on the side `before` if the merge was
 * earlier.
 */
const linksWithoutFilled = (isAfter: string) => `(
     select jsonb_object_agg(l.attribute_id, l.sides) from (
       select a.attribute_id, coalesce(jsonb_object_agg(s.side, k.ids) filter (where k.ids is not null), '{}') as sides
       from jsonb_each(q.links) as a(attribute_id, sides) left join lateral jsonb_each(a.sides) as s(side, ids) on true
         left join lateral (
           select jsonb_agg(i.id order by i.position) as ids from jsonb_array_elements(s.ids) with ordinality as i(id, position)
           where not (case when s.side = 'after' then ${isAfter} else not q.is_fill end
             and coalesce(q.given_links->a.attribute_id->'before' @> i.id and q.filled_links->a.attribute_id->'after' @> i.id
               and not coalesce(q.filled_links->a.attribute_id->'before' @> i.id, false), false))
         ) k on true
       group by a.attribute_id
     ) l
   )`

/**
 * $2: a person. Takes its values out of the log of those whom a merge filled with them until an unmerge, and of those into whom these
 * were merged meanwhile. Runs before the log of the person is blanked. Returns the numbers of the changes.
 */
export const blankFilledSql = statement(
  'blank_filled',
  `with recursive ended as (
     select m.id, m.sequence as given_by, m.into_id, m.sequence, m.unmerged_sequence, m.undo from merges m
     where m.organization_id = $1 and m.merged_id = $2 and m.unmerged_sequence is not null
     union
     select m.id, e.given_by, m.into_id, m.sequence, m.unmerged_sequence, m.undo
     from ended e join merges m on m.organization_id = $1 and m.merged_id = e.into_id
       and m.sequence > e.sequence and m.unmerged_sequence < e.unmerged_sequence
   ), quoting as materialized (
     select c.*, g.before as given, g.links as given_links, f.before as own, f.after as filled, f.links as filled_links, k.taken from ended e cross join lateral (
       select g.before, g.links from changes g where g.organization_id = $1 and g.sequence = e.given_by and g.before is not null offset 0
     ) g cross join lateral (
       select f.before, f.after, f.links from changes f
       where f.organization_id = $1 and f.entity_id = e.into_id and f.version = (e.undo->>'into_version')::integer offset 0
     ) f cross join lateral (
       select coalesce(jsonb_agg(n.value), '[]') as taken from jsonb_array_elements(f.after->'consents') as n(value)
       where e.sequence = e.given_by or e.undo->'answers' @> jsonb_build_array(jsonb_build_object(
         'consent_type_id', n.value->'consent_type_id', 'channel', n.value->'channel', 'person_id', $2::text))
     ) k cross join lateral (
       select c.ctid, c.sequence, c.before, c.after, c.links, c.version = (e.undo->>'into_version')::integer as is_fill,
         c.operation in ('restore', 'unmerge') as is_whole
       from changes c
       where c.organization_id = $1 and c.entity_id = e.into_id and c.version >= (e.undo->>'into_version')::integer
         and (c.sequence <= e.unmerged_sequence or c.version = (e.undo->>'unmerge_version')::integer) offset 0
     ) c
   ), without as materialized (
     select q.ctid, q.sequence, ${withoutFilled('q.before', 'not q.is_fill')} as before,
       ${withoutFilled('q.after', '(q.is_fill or q.is_whole)')} as after,
       ${linksWithoutFilled('(q.is_fill or q.is_whole)')} as links
     from quoting q
   ), blanked as (
     update changes c set before = w.before, after = w.after, links = w.links from without w
     where ${rowsOfWithout} and (c.before, c.after, c.links)
       is distinct from (w.before, w.after, w.links)
     returning c.sequence
   ) select coalesce(array_agg(b.sequence), '{}')::float8[] as sequences from blanked b`,
)

/** $2: ids. Remembers who links to them, because the log does not tell that the links are gone. */
export const insertSegmentChecksSql = statement(
  'insert_segment_checks',
  `insert into segment_checks (organization_id, entity_id)
   select distinct l.organization_id, l.source_id from links l where l.organization_id = $1 and l.target_id = any($2::uuid[])
   order by l.source_id on conflict do nothing`,
)

// The followers of the segments are locked, so nobody enters or leaves one between these three statements.

/**
 * $2: people. The feed tells that they left by their erasure, which the log shows with their ids. It is logged before. A segment that
 * somebody left earlier is told again: a reader of the feed may not have read that yet, and {@link deleteToldSql} deletes it.
 */
export const insertLeavingSql = statement(
  'insert_leaving',
  `insert into segment_changes (organization_id, segment_id, sequence, person_id, entered)
   select k.organization_id, k.segment_id, c.sequence, k.person_id, false from (
     select m.organization_id, m.segment_id, m.person_id from segment_members m
     where m.organization_id = $1 and m.person_id = any($2::uuid[])
     union
     select s.organization_id, s.segment_id, s.person_id from segment_changes s
     where s.organization_id = $1 and s.person_id = any($2::uuid[])
   ) k cross join lateral (
     select c.sequence from changes c
     where c.organization_id = $1 and c.entity_id = k.person_id order by c.version desc limit 1
   ) c`,
)

/** $2: people, $3: up to this number, before their erasure. Removes what the feed told of them. */
export const deleteToldSql = statement(
  'delete_told_memberships',
  `with gone as (
     delete from segment_changes s
     where s.organization_id = $1 and s.person_id = any($2::uuid[]) and s.sequence <= $3::bigint returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: people. Removes who they were in the segments. */
export const deleteMembershipsSql = statement(
  'delete_memberships',
  `with gone as (
     delete from segment_members m where m.organization_id = $1 and m.person_id = any($2::uuid[]) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: ids. */
export const deleteLinksOfSql = statement(
  'delete_links_of',
  `with gone as (
     delete from links l where l.organization_id = $1 and (l.source_id = any($2::uuid[]) or l.target_id = any($2::uuid[]))
     returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: ids. */
export const deleteOwnLinksSql = statement(
  'delete_own_links',
  `with gone as (
     delete from links l where l.organization_id = $1 and l.source_id = any($2::uuid[]) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: ids, $3: limit. The number of links to them, up to the limit. */
export const countLinksToSql = statement(
  'count_links_to',
  `select count(*)::integer as count from (
     select from links l where l.organization_id = $1 and l.target_id = any($2::uuid[]) limit $3
   ) l`,
)

/** $2: ids, $3: limit. Deletes links to them. The targets are erased, so nobody reads or writes these links. */
export const deleteLinksToSql = statement(
  'delete_links_to',
  `with gone as (
     delete from links l where l.organization_id = $1 and l.ctid = any(array(
       select k.ctid from links k where k.organization_id = $1 and k.target_id = any($2::uuid[]) limit $3 for update skip locked
     )) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: ids. */
export const deleteAliasesSql = statement(
  'delete_aliases_of',
  `with gone as (
     delete from aliases a where a.organization_id = $1 and a.person_id = any($2::uuid[]) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: ids. The ids of merges stay, so that nobody can undo them and everybody sees that they were. */
export const blankMergesSql = statement(
  'blank_merges',
  `with gone as (
     update merges m set undo = null
     where m.organization_id = $1 and m.undo is not null
       and (m.merged_id = any($2::uuid[]) or m.into_id = any($2::uuid[]) or m.person_id = any($2::uuid[]))
     returning 1
   ) select count(*)::integer as count from gone`,
)

/**
 * $2: texts. Deletes stored responses with one of the texts. The texts of JSON and of headers are
 * searched, because a response may have a person anywhere.
 */
export const deleteResponsesSql = statement(
  'delete_responses_with',
  `with gone as (
     delete from idempotency_keys k
     where k.organization_id = $1 and exists (
       select from unnest($2::text[]) as n(text) where strpos(k.body, n.text) > 0 or strpos(k.headers::text, n.text) > 0
     ) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: numbers of changes. Drops their deliveries that wait. */
export const dropDeliveriesSql = statement(
  'drop_deliveries',
  `with gone as (
     delete from webhook_deliveries d using webhooks w
     where w.organization_id = $1 and d.organization_id = $1 and d.webhook_id = w.id and d.sequence = any($2::bigint[])
       and d.status = 'waiting'
     returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: texts. Takes the texts with one of them that receivers answered: those of changes of others may quote an erased entity. */
export const blankQuotingDeliveriesSql = statement(
  'blank_quoting_deliveries',
  `with gone as (
     update webhook_deliveries d set response = null, error = null from webhooks w
     where w.organization_id = $1 and d.organization_id = $1 and d.webhook_id = w.id
       and (d.response is not null or d.error is not null) and exists (
         select from unnest($2::text[]) as n(text) where strpos(d.response, n.text) > 0 or strpos(d.error, n.text) > 0
       )
     returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: numbers of changes. Takes the texts that receivers answered. */
export const blankDeliveriesSql = statement(
  'blank_deliveries',
  `with gone as (
     update webhook_deliveries d set response = null, error = null from webhooks w
     where w.organization_id = $1 and d.organization_id = $1 and d.webhook_id = w.id and d.sequence = any($2::bigint[])
       and (d.response is not null or d.error is not null)
     returning 1
   ) select count(*)::integer as count from gone`,
)
