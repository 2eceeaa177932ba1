import { channels, channelTable } from '../../channels.ts'
import { statement } from '../../db/db.ts'
import { profileTexts } from '../../profile-fields.ts'

// Between a merge and its undoing, the log of the survivor got values of the merged person.

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
 * $2: a person. The changes of those whom a merge filled with its values until an unmerge, and of those into whom these were merged
 * meanwhile, as they are without these values.
 */
const filledLog = `with recursive ended as (
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
     select q.ctid, q.sequence, w.* from quoting q cross join lateral (
       select ${withoutFilled('q.before', 'not q.is_fill')} as before, ${withoutFilled('q.after', '(q.is_fill or q.is_whole)')} as after,
         ${linksWithoutFilled('(q.is_fill or q.is_whole)')} as links offset 0
     ) w where (q.before, q.after, q.links) is distinct from (w.before, w.after, w.links)
   )`

/** $2: a person. The texts of the deliveries of {@link filledLog}. Runs before {@link blankFilledSql}. */
export const blankFilledDeliveriesSql = statement(
  'blank_filled_deliveries',
  `${filledLog}, gone as (
     update webhook_deliveries d set response = null, error = null from webhooks w
     where w.organization_id = $1 and d.organization_id = $1 and d.webhook_id = w.id
       and d.sequence = any(array(select x.sequence from without x)) and (d.response is not null or d.error is not null)
     returning 1
   ) select count(*)::integer as count from gone`,
)

/**
 * $2: a person. Takes its values out of {@link filledLog}. Runs before the log of the person is emptied. Joined by number alone, a generic
 * plan hashed the whole log of the organization: two seconds with two million changes. A row that retention empties meanwhile is left as it
 * is then.
 */
export const blankFilledSql = statement(
  'blank_filled',
  `${filledLog}, gone as (
     update changes c set before = w.before, after = w.after, links = w.links from without w
     where c.organization_id = $1 and c.ctid = any(array(select w.ctid from without w)) and c.sequence = w.sequence
     returning 1
   ) select count(*)::integer as count from gone`,
)
