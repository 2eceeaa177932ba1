import { statement } from '../../db/db.ts'

// Between a merge and its unmerge, the log of the survivor may have got values of the merged person.

type Side = 'q.before' | 'q.after'

/** Whether the survivor itself wrote a field, an attribute or links after the merge, up to this side of a change q. */
const isOwn = (side: Side, of: 'fields' | 'attributes' | 'links', key: string) =>
  `coalesce((q.own_writes->'${of}'->>${key})::integer ${side === 'q.before' ? '<' : '<='} q.version, false)`

/** Whether a field of a change q comes from the merge: the merged person had it, and the survivor got this value. */
const isFilled = (side: Side, key: string, value: string) =>
  `coalesce(q.filled->${key} = ${value} and q.given->${key} <> 'null', false) and not ${isOwn(side, 'fields', key)}`

/** The value of an attribute a of a change q, as a list. */
const listIn = (values: string) =>
  `(select case jsonb_typeof(v.value) when 'array' then v.value else jsonb_build_array(v.value) end
        from (select ${values}->'attribute_values'->a.key as value) v where v.value is not null)`

/** The list of an attribute a of a change q without the elements that came with a merge. */
const listWithoutFilled = `(
         select coalesce(jsonb_agg(x.value order by x.position), '[]')
         from jsonb_array_elements(a.value) with ordinality as x(value, position)
         where not (${listIn('q.given')} @> jsonb_build_array(x.value)
           and not coalesce(${listIn('q.own')} @> jsonb_build_array(x.value), false))
       )`

/**
 * The attribute values `logged` of a side of a change q without the values of a merge. Their keys are removed too,
 * because a key may be the client's own text. The removal of a declared attribute stays, because a program that read
 * the merge before the erasure would otherwise keep the value.
 */
const attributesWithoutFilled = (side: Side, logged: string) =>
  `coalesce((
       select jsonb_object_agg(a.key, case
         when f.is_filled and jsonb_typeof(a.value) = 'array' and not ${isOwn(side, 'attributes', 'a.key')} then ${listWithoutFilled}
         else a.value end)
       from jsonb_each(${logged}) as a(key, value) cross join lateral (
         select coalesce(q.filled->'attribute_values' ? a.key and q.given->'attribute_values' ? a.key, false) as is_filled
       ) f
       where not (f.is_filled and not ${isOwn(side, 'attributes', 'a.key')} and (
         a.value = 'null' and not a.key = any(q.declared) or a.value = q.filled->'attribute_values'->a.key
           and (jsonb_typeof(a.value) <> 'array' or coalesce(q.own->'attribute_values'->a.key, 'null') = 'null')))
     ), '{}')`

/**
 * The entries of `consents` of a change q, without the answers of the merged person. An entry before a change has no
 * time.
 */
const consentsWithoutFilled = (logged: string) =>
  `coalesce((
       select jsonb_agg(x.value order by x.position) from jsonb_array_elements(${logged}) with ordinality as x(value, position)
       where x.value->>'state' is null or not q.taken @> jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
         'consent_type_id', x.value->'consent_type_id', 'channel', x.value->'channel', 'state', x.value->'state',
         'answered_at', x.value->'answered_at')))
     ), '[]')`

/**
 * The values of a side of a change q without the values of a merge. q.given has the values of the merged person,
 * q.filled the values that the survivor got, and q.own the survivor's earlier values. A value from the merge becomes
 * null. A value that the survivor itself wrote stays.
 */
const withoutFilled = (side: Side) =>
  `case when ${side} is not null then coalesce((
       select jsonb_object_agg(k.key, case
         when k.key = 'attribute_values' and jsonb_typeof(k.value) = 'object' then ${attributesWithoutFilled(side, 'k.value')}
         when k.key = 'consents' and jsonb_typeof(k.value) = 'array' then ${consentsWithoutFilled('k.value')}
         when ${isFilled(side, 'k.key', 'k.value')} then 'null' else k.value end)
       from jsonb_each(${side}) as k(key, value)
     ), '{}') end`

/** The links of a change q without the links from a merge. */
const linksWithoutFilled = `(
     select jsonb_object_agg(l.attribute_id, l.sides) from (
       select a.attribute_id, coalesce(jsonb_object_agg(s.side, k.ids) filter (where k.ids is not null), '{}') as sides
       from jsonb_each(q.links) as a(attribute_id, sides) left join lateral jsonb_each(a.sides) as s(side, ids) on true
         left join lateral (
           select jsonb_agg(i.id order by i.position) as ids from jsonb_array_elements(s.ids) with ordinality as i(id, position)
           where not coalesce(q.given_links->a.attribute_id->'before' @> i.id and q.filled_links->a.attribute_id->'after' @> i.id
             and not coalesce(q.filled_links->a.attribute_id->'before' @> i.id, false), false)
             or case s.side when 'before' then ${isOwn('q.before', 'links', 'a.attribute_id')}
               else ${isOwn('q.after', 'links', 'a.attribute_id')} end
         ) k on true
       group by a.attribute_id
     ) l
   )`

/**
 * $2: a person who was merged and unmerged. Selects the changes of the survivors that got its values in between, also
 * by later merges, without these values.
 */
const filledLog = `with recursive ended as (
     select m.id, m.sequence as given_by, m.into_id, m.sequence, m.unmerged_sequence, m.undo from merges m
     where m.organization_id = $1 and m.merged_id = $2 and m.unmerged_sequence is not null
     union
     select m.id, e.given_by, m.into_id, m.sequence, m.unmerged_sequence, m.undo
     from ended e cross join lateral (
       select m.* from merges m
       where m.organization_id = $1 and m.merged_id = e.into_id and m.sequence > e.sequence
         and m.unmerged_sequence < e.unmerged_sequence offset 0
     ) m
   ), quoting as materialized (
     select c.*, g.before as given, g.links as given_links, f.before as own, f.after as filled, f.links as filled_links, k.taken, o.own_writes, d.declared
     from ended e cross join lateral (
       select g.before, g.links from changes g where g.organization_id = $1 and g.sequence = e.given_by and g.before is not null offset 0
     ) g cross join lateral (
       select f.before, f.after, f.links from changes f
       where f.organization_id = $1 and f.entity_id = e.into_id and f.version = (e.undo->>'into_version')::integer offset 0
     ) f cross join lateral (
       select coalesce(jsonb_agg(n.value), '[]') as taken from jsonb_array_elements(f.after->'consents') as n(value)
       where e.sequence = e.given_by or e.undo->'answers' @> jsonb_build_array(jsonb_build_object(
         'consent_type_id', n.value->'consent_type_id', 'channel', n.value->'channel', 'person_id', $2::text))
     ) k cross join lateral (
       select jsonb_build_object(
         'fields', jsonb_object_agg(w.key, w.version) filter (where w.kind = 'fields'),
         'attributes', jsonb_object_agg(w.key, w.version) filter (where w.kind = 'attributes'),
         'links', jsonb_object_agg(w.key, w.version) filter (where w.kind = 'links')) as own_writes
       from (
         select n.key, n.kind, min(c.version) as version from changes c cross join lateral (
           select f.key, 'fields' as kind from jsonb_object_keys(c.after) as f(key)
           union all select l.key, 'links' from jsonb_object_keys(coalesce(c.links, '{}')) as l(key)
           union all select a.key, 'attributes' from jsonb_each(case jsonb_typeof(c.after->'attribute_values') when 'object' then c.after->'attribute_values' end) as a(key, value)
         ) n
         where c.organization_id = $1 and c.entity_id = e.into_id and c.version > (e.undo->>'into_version')::integer
           and c.sequence <= e.unmerged_sequence and c.operation = 'update' and c.merge_id is null
         group by n.key, n.kind
       ) w
     ) o cross join lateral (
       select array(select a.key from attributes a where a.organization_id = $1 and a.owner_stack_id = 0) as declared
     ) d cross join lateral (
       select c.ctid, c.sequence, c.version, c.before, c.after, c.links, c.basis from changes c
       where c.organization_id = $1 and c.entity_id = e.into_id and c.version >= (e.undo->>'into_version')::integer
         and (c.sequence <= e.unmerged_sequence or c.merge_id = e.id) offset 0
     ) c
   ), without as materialized (
     select q.ctid, q.sequence, w.* from quoting q cross join lateral (
       select ${withoutFilled('q.before')} as before, ${withoutFilled('q.after')} as after, ${linksWithoutFilled} as links offset 0
     ) w where (q.before, q.after, q.links) is distinct from (w.before, w.after, w.links)
   )`

/** $2: a person. Empties the deliveries of the changes of {@link filledLog}. Runs before {@link blankFilledSql}. */
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
 * $2: a person. Removes its values from the changes of {@link filledLog}. Runs before the log of the person is emptied.
 * It joins by ctid, because a generic plan with a join by number hashed the whole log of the organization, which took
 * two seconds with two million changes. A row that retention empties at the same time stays as retention leaves it. The
 * `basis` of other changes is removed, so that a past state is computed from all changes again. It then shows an
 * earlier value where a later one was removed.
 */
export const blankFilledSql = statement(
  'blank_filled',
  `${filledLog}, gone as (
     update changes c set before = w.before, after = w.after, links = w.links, basis = null from without w
     where c.organization_id = $1 and c.ctid = any(array(select w.ctid from without w)) and c.sequence = w.sequence
     returning 1
   ), unbased as (
     update changes c set basis = null
     where c.organization_id = $1 and c.basis is not null and c.ctid = any(array(
       select q.ctid from quoting q where q.basis is not null and q.sequence not in (select w.sequence from without w)
     ))
   ) select count(*)::integer as count from gone`,
)
