import { statement } from '../../db/db.ts'
import { schema_version } from './read-sql.ts'

const cut = (text: string) => `left(${text}, $9::integer)`
const textOf = (value: string) =>
  `case when jsonb_typeof(${value}) in ('string', 'number', 'boolean') then ${cut(`${value} #>> '{}'`)} end`

/** The path takes the first elements without reading the others: 2,000 elements of 52 keys of ten records took half a second. */
const firstElements = `jsonb_path_query_array(a.v -> k.key, '$[0 to $last]', jsonb_build_object('last', $9::integer - 1))`

const valuesOf = `(
         select jsonb_object_agg(k.key, case when jsonb_typeof(a.v -> k.key) = 'array' then (
             select jsonb_agg(${textOf('x.element')} order by x.n)
             from jsonb_array_elements(${firstElements}) with ordinality x(element, n)
           ) else to_jsonb(${textOf('(a.v -> k.key)')}) end)
         from (select e.attributes || '{}'::jsonb as v offset 0) a
         cross join unnest($6::integer[], $7::text[]) k(stack_id, key) where k.stack_id = e.stack_id and a.v ? k.key
       )`

/**
 * Reads what the labels of entities and of the targets of their links need. $2: stack of the entities, $3: their ids, $4: relationships
 * whose targets are labeled or named, $5: relationships that the labels of these targets name, $6 and $7: pairs of a stack and a key of
 * an attribute, $8: the most links of each step, $9: the most characters of a text and elements of a list. Returns the links as arrays of source, attribute and target, in order, and the entities
 * as arrays of stack, id, external identifier, the fields of a person, and the values as texts.
 */
export const readLabelsSql = statement(
  'read_labels',
  `with linked as materialized (
     select s.id as source_id, l.attribute_id, l.position, l.target_stack_id, l.target_id
     from unnest($3::uuid[]) s(id) cross join lateral (
       select l.attribute_id, l.position, l.target_stack_id, l.target_id from links l
       where l.organization_id = $1 and l.source_id = s.id and l.attribute_id = any($4::integer[]) offset 0
     ) l limit $8::integer
   ), hops as materialized (
     select s.target_id as source_id, l.attribute_id, l.position, l.target_stack_id, l.target_id
     from (select distinct d.target_id from linked d where cardinality($5::integer[]) > 0) s cross join lateral (
       select l.attribute_id, l.position, l.target_stack_id, l.target_id from links l
       where l.organization_id = $1 and l.source_id = s.target_id and l.attribute_id = any($5::integer[]) offset 0
     ) l limit $8::integer
   ), steps as (
     select * from linked union select * from hops
   ), named as (
     select $2::integer as stack_id, s.id from unnest($3::uuid[]) s(id)
     union select s.target_stack_id, s.target_id from steps s
   )
   select (
       select coalesce(jsonb_agg(jsonb_build_array(s.source_id, s.attribute_id, s.target_id)
         order by s.source_id, s.attribute_id, s.position), '[]') from steps s
     ) as links, (
       select coalesce(jsonb_agg(jsonb_build_array(e.stack_id, e.id, e.external_id, ${cut('e.first_name')},
         ${cut('e.last_name')}, ${cut('e.email')}, ${cut('e.mobile_prefix')}, ${cut('e.mobile_number')},
         case when e.stack_id = any($6::integer[]) then ${valuesOf} end)), '[]')
       from named n cross join lateral (
         select e.* from entities e where e.organization_id = $1 and e.stack_id = n.stack_id and e.id = n.id offset 0
       ) e
     ) as entities, ${schema_version}`,
)
