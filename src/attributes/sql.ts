import { statement } from '../db/db.ts'

/**
 * $2: [{id, owner_stack_id, key, name, description, type, target_stack_id, cardinality, indexed, index_id, index_ready,
 * rules, searchable, version}], $3: the time.
 */
export const insertAttributesSql = statement(
  'insert_attributes',
  `insert into attributes (organization_id, id, owner_stack_id, key, name, description, type, target_stack_id, cardinality,
     indexed, state, created_at, updated_at, index_id, index_ready, rules, searchable, version)
   select h.organization_id, v.id, v.owner_stack_id, v.key, v.name, v.description, v.type, v.target_stack_id, v.cardinality,
     v.indexed, 'active', $3, $3, v.index_id, v.index_ready, v.rules, v.searchable, v.version
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(id integer, owner_stack_id integer, key text,
     name text, description text, type text, target_stack_id integer, cardinality text, indexed boolean, index_id integer,
     index_ready boolean, rules jsonb, searchable boolean, version integer)
   where h.organization_id = $1`,
)

/**
 * $2: id, $3: name, $4: description, $5: cardinality, $6: indexed, $7: state, $8: the time, $9: index id, $10: whether
 * the index is ready without a fill, $11: rules, $12: searchable, $13: the version. Deletes the sort index with the
 * other index: no attribute has the id 0.
 */
export const updateAttributeSql = statement(
  'update_attribute',
  `with dropped as (
     delete from sort_indexes s using attributes d
     where s.organization_id = $1 and d.organization_id = $1 and s.stack_id = d.owner_stack_id
       and d.id = case when $6 and $7 = 'active' and $5 = 'one' then 0 else $2 end
       and s.field = 'attribute_values.' || d.key
   ), updated as (
     update attributes set name = $3, description = $4, cardinality = $5, indexed = $6, state = $7, updated_at = $8,
       index_id = $9, index_ready = $10 or (index_ready and $9 is not distinct from index_id), rules = $11, searchable = $12, version = $13
     where organization_id = $1 and id = $2 returning 1
   ) select from updated`,
)

/**
 * $2: stack, $3: keys, $4: maximum. Returns the number of the stack's entities, up to the maximum, and whether any
 * entity has one of the keys.
 */
export const findCarrierSql = statement(
  'find_carrier',
  `select count(*)::integer as entities, coalesce(bool_or(e.carries), false) as carries
   from (
     select e.attributes ?| $3::text[] as carries from entities e where e.organization_id = $1 and e.stack_id = $2 limit $4
   ) e`,
)

/** $2: stack, $3: keys. Returns the keys that an entity has. */
export const findCarriedKeysSql = statement(
  'find_carried_keys',
  `select distinct k.key from entities e cross join lateral jsonb_object_keys(e.attributes) as k(key)
   where e.organization_id = $1 and e.stack_id = $2 and e.attributes ?| $3::text[] and k.key = any($3::text[])`,
)

/**
 * $2: index, $3: stack, $4: key, $5: maximum of values. Returns the values that several entities have, and the number
 * of these entities. Few terms belong to several entities, so only the rows of these entities are read. A long text has
 * the term of its first characters.
 */
export const findRepeatedValuesSql = statement(
  'find_repeated_values',
  `select v.value, count(*)::integer as entities from (
     select t.value from terms t where t.organization_id = $1 and t.index_id = $2 group by t.value having count(*) > 1
   ) repeated cross join lateral (
     select e.attributes->$4 as value from terms t cross join lateral (
       select e.attributes from entities e
       where e.organization_id = $1 and e.stack_id = $3 and e.id = t.entity_id and e.attributes ? $4 offset 0
     ) e
     where t.organization_id = $1 and t.index_id = $2 and t.value = repeated.value offset 0
   ) v
   group by v.value having count(*) > 1 order by count(*) desc, v.value limit $5`,
)

/** $2: ids of indexes. Returns the progress of those whose fill has begun. */
export const readProgressSql = statement(
  'read_progress',
  'select f.index_id, f.indexed, f.total from fills f where f.organization_id = $1 and f.index_id = any($2::integer[])',
)
