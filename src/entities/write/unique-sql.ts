import { statement } from '../../db/db.ts'

/** The entities e other than a.id that have the value of the claim a. Its term leads to them, and the row decides. */
const holders = (columns: string, other: string) => `select ${columns} from (
       select t.entity_id from terms t
       where t.organization_id = $1 and t.index_id = a.index_id and t.value = a.term offset 0
     ) t cross join lateral (
       select e.id, e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = t.entity_id and e.attributes->a.key = a.value
         ${other} offset 0
     ) e`

const claims = `jsonb_to_recordset($2::text::jsonb) as a(number integer, stack_id integer, index_id integer, term text,
     key text, value jsonb, id uuid)`

/**
 * $2: [{number, stack_id, index_id, term, key, value}]. Returns up to two entities that have each value: one of them may be the entity
 * that is written.
 */
export const findHoldersSql = statement(
  'find_holders',
  `select a.number, h.id, h.external_id from ${claims} cross join lateral (
     ${holders('e.id, e.external_id', '')} limit 2
   ) h`,
)

/**
 * $2: [{stack_id, index_id, term, key, value, id}], the values that entities were given. Runs after apply, which has locked the head, so
 * it sees every commit before. If another entity has one of the values now, the division by zero fails the transaction,
 * and the set is decided again.
 */
export const checkUniqueSql = statement(
  'check_unique',
  `update change_heads set sequence = sequence / 0
   where organization_id = $1 and exists (
     select from ${claims} cross join lateral (
       ${holders('', 'and e.id <> a.id')} limit 1
     ) h
   )`,
)
