import { statement } from '../db/db.ts'

/**
 * $2: id, $3: owner, $4: key, $5: name, $6: description, $7: type, $8: target, $9: cardinality, $10: indexed, $11: the time,
 * $12: index id, $13: whether the index is ready, $14: rules, $15: searchable.
 */
export const insertAttributeSql = statement(
  'insert_attribute',
  `insert into attributes (organization_id, id, owner_stack_id, key, name, description, type, target_stack_id, cardinality,
     indexed, state, created_at, updated_at, index_id, index_ready, rules, searchable)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'active', $11, $11, $12, $13, $14, $15)`,
)

/**
 * $2: id, $3: name, $4: description, $5: cardinality, $6: indexed, $7: state, $8: the time, $9: index id, $10: whether the index is
 * ready without a fill, $11: rules, $12: searchable. The sort index goes with the other one: no attribute
 * has the id 0.
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
       index_id = $9, index_ready = $10 or (index_ready and $9 is not distinct from index_id), rules = $11, searchable = $12
     where organization_id = $1 and id = $2 returning 1
   ) select from updated`,
)

/** $2: stack, $3: key, $4: maximum. Returns how many entities the stack has, up to the maximum, and whether one of them carries the key. */
export const findCarrierSql = statement(
  'find_carrier',
  `select count(*)::integer as entities, coalesce(bool_or(e.carries), false) as carries
   from (
     select e.attributes ? $3 as carries from entities e where e.organization_id = $1 and e.stack_id = $2 limit $4
   ) e`,
)

/**
 * $2: index, $3: stack, $4: key, $5: maximum of values. Returns the values that several entities have, and how many. The terms that
 * several entities share are few, so the rows of these entities alone are read. A long text has the term of its first characters.
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
