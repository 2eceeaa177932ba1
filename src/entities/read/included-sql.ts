import { statement } from '../../db/db.ts'
import { rowTextById, schema_version } from './read-sql.ts'

// A step reads 32 rows, so the reading ends at most 32 rows past the limit.
const rowsOfStep = 32

/**
 * $2: ids of entities, $3: relationships, $4: maximum number of links, $5: maximum bytes of rows, $6: whether their
 * relationships are read by internal identifier. Returns the links as arrays of
 * the place of the source in $2, the attribute and the target, and the rows of the targets, each once. Without rows, there are
 * more links than the maximum. `octets` above the maximum tells that rows are missing.
 */
export const readIncludedSql = statement(
  'read_included',
  `with recursive linked as materialized (
     select s.n, l.attribute_id, l.position, l.target_stack_id, l.target_id
     from unnest($2::uuid[]) with ordinality s(id, n) cross join lateral (
       select l.attribute_id, l.position, l.target_stack_id, l.target_id from links l
       where l.organization_id = $1 and l.source_id = s.id and l.attribute_id = any($3::integer[]) offset 0
     ) l limit $4::integer + 1
   ), targets as materialized (
     select coalesce(array_agg(d.target_stack_id), '{}') as stacks, coalesce(array_agg(d.target_id), '{}') as ids
     from (select distinct l.target_stack_id, l.target_id from linked l) d
     where (select count(*) from linked) <= $4
   ), walk(n, rows, octets) as (
     select 0, null::text, 0::bigint
     union all
     select w.n + ${rowsOfStep}, r.rows, w.octets + coalesce(r.octets, 0)
     from walk w cross join targets t cross join lateral (
       select string_agg(x.row, E'\\n') as rows, sum(octet_length(x.row))::bigint as octets from (
         select ${rowTextById('$6')} as row
         from unnest(t.stacks[w.n + 1 : w.n + ${rowsOfStep}], t.ids[w.n + 1 : w.n + ${rowsOfStep}]) as p(stack_id, id)
         cross join lateral (
           select e.* from entities e where e.organization_id = $1 and e.stack_id = p.stack_id and e.id = p.id offset 0
         ) e offset 0
       ) x
     ) r
     where w.n < cardinality(t.ids) and w.octets <= $5
   )
   select (
       select coalesce(jsonb_agg(jsonb_build_array(l.n, l.attribute_id, l.target_id) order by l.n, l.attribute_id, l.position), '[]')
       from linked l
     ) as links,
     (select string_agg(w.rows, E'\\n') from walk w) as rows, (select max(w.octets) from walk w) as octets, ${schema_version}`,
)
