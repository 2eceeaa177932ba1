import { datePattern, timePattern } from '../db/date-patterns.ts'
import { statement } from '../db/db.ts'
import { timeText } from '../db/time-text.ts'

/** The name of the follower that counts observed keys. */
export const followerName = 'observed_keys'

/** The type of a JSON value, as `observedTypes` of the schema names it. A text that is a date or a date and time counts as that. */
const typeOf = (value: string) => `case jsonb_typeof(${value}) when 'string' then case
       when ${value} #>> '{}' ~ '${datePattern}' then 'date'
       when left(${value} #>> '{}', 10) ~ '${datePattern}' and substr(${value} #>> '{}', 11) ~ '${timePattern}' then 'datetime'
       else 'text' end else jsonb_typeof(${value}) end`

/** The columns of the counts, and the type that each counts. */
const counted = {
  texts: 'text',
  numbers: 'number',
  booleans: 'boolean',
  objects: 'object',
  arrays: 'array',
  dates: 'date',
  datetimes: 'datetime',
}
const columns = Object.keys(counted)

const countsByType = (type: string, condition = 'true') =>
  Object.entries(counted)
    .map(([column, name]) => `count(*) filter (where ${type} = '${name}' and ${condition}) as ${column}`)
    .join(', ')

const typesAsJson = (row: string) =>
  `jsonb_build_object(${Object.entries(counted)
    .map(([column, name]) => `'${name}', ${row}.${column}`)
    .join(', ')})`

const isErasing = `c.entity_id = any(array(
       select x.entity_id from erasures x where x.organization_id = $1 and x.completed_at is null
     ))`

// A merge and its undoing move the values of one person to another, in the change that follows theirs.
const isMoved = `c.operation = 'update' and c.stack_id = 0 and exists (
       select from changes m where m.organization_id = $1 and m.sequence = c.sequence - 1
         and m.operation in ('merge', 'unmerge') and m.request_id = c.request_id
     )`

/**
 * $2: after this number, $3: up to this number, $4: the most keys of an owner. Counts the values that creates and updates wrote under
 * keys that were not declared at that moment.
 */
export const countObservedSql = statement(
  'count_observed_keys',
  `insert into observed_keys (organization_id, stack_id, key, ${columns.join(', ')}, first_seen, last_seen, entity_id)
   with declarations as materialized (
     select a.owner_stack_id, a.key, c.sequence as since,
       lead(c.sequence) over (partition by a.owner_stack_id, a.key order by c.sequence) as until,
       c.operation = 'create' or c.after->>'state' = 'active' as is_declared
     from changes c join attributes a on a.organization_id = $1 and a.id = c.definition_id
     where c.organization_id = $1 and c.entity_id is null and c.subject = 'attribute' and c.sequence <= $3::bigint
       and (c.operation = 'create' or c.after ? 'state')
   ), written as materialized (
     select c.sequence, c.at, c.stack_id, c.entity_id, v.key collate "C" as key, ${typeOf('v.value')} as type
     from changes c cross join lateral jsonb_each(
       case when jsonb_typeof(c.after->'attribute_values') = 'object' then c.after->'attribute_values' end
     ) v
     where c.organization_id = $1 and c.sequence > $2::bigint and c.sequence <= $3::bigint and c.subject = 'entity'
       and c.operation in ('create', 'update') and v.value <> 'null'::jsonb and not (${isErasing}) and not (${isMoved})
   ), counts as materialized (
     select w.stack_id, w.key, min(w.at) as first_seen, max(w.at) as last_seen, ${countsByType('w.type')},
       case when count(distinct w.entity_id) = 1 then min(w.entity_id::text)::uuid end as entity_id
     from written w
     where not exists (
       select from declarations d
       where d.owner_stack_id = w.stack_id and d.key = w.key and d.is_declared and w.sequence > d.since
         and (d.until is null or w.sequence < d.until)
     )
     group by w.stack_id, w.key
   ), fresh as materialized (
     select n.stack_id, n.key, row_number() over (partition by n.stack_id order by n.key) as position
     from counts n where not exists (
       select from observed_keys k where k.organization_id = $1 and k.stack_id = n.stack_id and k.key = n.key
     )
   ), full_owners as materialized (
     select s.stack_id, $4::integer - (
       select count(*) from observed_keys k where k.organization_id = $1 and k.stack_id = s.stack_id
     ) as free
     from (select distinct f.stack_id from fresh f) s
   )
   select h.organization_id, n.stack_id, n.key, ${columns.map(column => `n.${column}`).join(', ')}, n.first_seen, n.last_seen, n.entity_id
   from change_heads h cross join counts n
   where h.organization_id = $1 and not exists (
     select from fresh f join full_owners o on o.stack_id = f.stack_id
     where f.stack_id = n.stack_id and f.key = n.key and f.position > o.free
   )
   order by n.stack_id, n.key
   on conflict (organization_id, stack_id, key) do update set
     ${columns.map(column => `${column} = observed_keys.${column} + excluded.${column}`).join(', ')},
     first_seen = least(observed_keys.first_seen, excluded.first_seen),
     last_seen = greatest(observed_keys.last_seen, excluded.last_seen),
     entity_id = case when observed_keys.entity_id = excluded.entity_id then excluded.entity_id end`,
)

/**
 * $2: stack, $3: the name of the follower, $4: the most keys of an owner. The keys of an owner that are not declared now, and the last
 * change that is counted.
 */
export const listObservedSql = statement(
  'list_observed_keys',
  `select coalesce((
       select f.sequence from followers f where f.organization_id = $1 and f.name = $3 and f.id = 0
     ), 0) as sequence, (
       select count(*) from observed_keys k where k.organization_id = $1 and k.stack_id = $2
     ) >= $4::integer as truncated, coalesce((
       select jsonb_agg(jsonb_build_object('key', k.key, 'types', ${typesAsJson('k')},
         'count', ${columns.map(column => `k.${column}`).join(' + ')},
         'first_seen', ${timeText('k.first_seen')},
         'last_seen', ${timeText('k.last_seen')}) order by k.key)
       from observed_keys k
       where k.organization_id = $1 and k.stack_id = $2 and not exists (
         select from attributes a
         where a.organization_id = $1 and a.owner_stack_id = $2 and a.key = k.key and a.state = 'active'
       )
     ), '[]') as items`,
)

/** Whether a value fits the type $4. */
const fitsType = (value: string) => `case $4::text
       when 'text' then jsonb_typeof(${value}) = 'string'
       when 'number' then jsonb_typeof(${value}) = 'number'
       when 'boolean' then jsonb_typeof(${value}) = 'boolean'
       when 'date' then ${typeOf(value)} = 'date'
       when 'datetime' then ${typeOf(value)} = 'datetime'
       else true end`

/**
 * $2: stack, $3: key, $4: type, $5: whether the attribute holds many values, $6: how many examples. Counts the stored values that an
 * attribute would accept, and those that it would refuse by type, with the ids of the first entities that have one.
 */
export const countFittingSql = statement(
  'count_fitting_values',
  `with valued as materialized (
     select e.id, v.type, v.fits from entities e cross join lateral (
       select x.value, ${typeOf('x.value')} as type, case when not $5::boolean then ${fitsType('x.value')}
         else jsonb_typeof(x.value) = 'array' and not exists (
           select from jsonb_array_elements(case when jsonb_typeof(x.value) = 'array' then x.value end) i(value)
           where i.value = 'null'::jsonb or not ${fitsType('i.value')}
         ) end as fits
       from (select e.attributes->$3 as value offset 0) x offset 0
     ) v
     where e.organization_id = $1 and e.stack_id = $2 and e.attributes ? $3 and v.value <> 'null'::jsonb
   ), counts as (
     select count(*) filter (where v.fits) as fits, count(*) filter (where not v.fits) as misfits,
       ${countsByType('v.type', 'not v.fits')}
     from valued v
   )
   select c.fits, c.misfits, ${typesAsJson('c')} as misfit_types, array(
       select case when $2 = 0 then v.id::text else left(replace(v.id::text, '-', ''), 24) end
       from valued v where not v.fits order by v.id limit $6
     ) as examples
   from counts c`,
)
