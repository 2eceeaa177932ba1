import { statement } from '../db/db.ts'
import { datePattern, timePattern, timeText } from '../db/time-text.ts'

/** The type of a JSON value, one of `observedTypes`. A text that is a date or a date and time counts as that. */
const typeOf = (value: string) => `case jsonb_typeof(${value}) when 'string' then case
       when ${value} #>> '{}' ~ '${datePattern}' then 'date'
       when left(${value} #>> '{}', 10) ~ '${datePattern}' and substr(${value} #>> '{}', 11) ~ '${timePattern}' then 'datetime'
       else 'text' end else jsonb_typeof(${value}) end`

/** The columns of the counts, with the type that each counts. */
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

/** The identifier of an entity in the form of the API. */
const identifierOf = (row: string) =>
  `case when $2 = 0 then ${row}.id::text else left(replace(${row}.id::text, '-', ''), 24) end`

/**
 * $2: stack, $3: before this id, $4: number of entities, $5: keys to leave out, $6: maximum of keys, $7: number of
 * examples of a key. Counts the stored values of a portion of the entities, the newest first, by key and type. A key
 * with several values in a portion has the times of the first creation and of the last change among these entities.
 */
export const countObservedSql = statement(
  'count_observed_keys',
  `with portion as materialized (
     select e.id, e.attributes, e.created_at, e.updated_at from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id < $3 order by e.id desc limit $4
   ), valued as materialized (
     select p.id, p.created_at, p.updated_at, v.key collate "C" as key, ${typeOf('v.value')} as type
     from portion p cross join lateral jsonb_each(p.attributes) v
     where v.value <> 'null'::jsonb and not (v.key = any($5::text[]))
   ), counts as materialized (
     select v.key, min(v.created_at) as first_seen, max(v.updated_at) as last_seen, ${countsByType('v.type')},
       (array_agg(v.id order by v.id desc))[1:$7::integer] as ids
     from valued v group by v.key order by v.key limit $6
   )
   select (select h.sequence from change_heads h where h.organization_id = $1) as sequence,
     (select count(*) from portion) as entities, (select p.id from portion p order by p.id limit 1) as last,
     coalesce((
       select jsonb_agg(jsonb_build_object('key', c.key, 'types', ${typesAsJson('c')},
         'count', ${columns.map(column => `c.${column}`).join(' + ')},
         'first_seen', ${timeText('c.first_seen')}, 'last_seen', ${timeText('c.last_seen')},
         'examples', array(select ${identifierOf('i')} from unnest(c.ids) i(id))) order by c.key)
       from counts c
     ), '[]') as keys`,
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
 * $2: stack, $3: key, $4: type, $5: whether the attribute has many values, $6: number of examples. Counts the stored
 * values that an attribute would accept, and the rejected ones by type, with the ids of the first entities that have
 * one.
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
       select ${identifierOf('v')} from valued v where not v.fits order by v.id limit $6
     ) as examples
   from counts c`,
)
