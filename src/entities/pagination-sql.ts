import { statement } from '../db/db.ts'
import { readRows } from './read-sql.ts'

// Each attribute's links lie in order of the other end's id, so a page of a hub is as quick as one of a leaf. What a
// link points to may be gone: the entity is looked at before links are counted, or pages would be short.
const linked = (beyond: string, order: string) => `(
     select l.id from unnest($7::integer[]) a, lateral (
       select t.id from links l
         join entities t on t.organization_id = $1 and t.stack_id = $3 and t.id = l.target_id
       where l.organization_id = $1 and l.source_id = $6 and l.attribute_id = a and l.target_id ${beyond} $4
       order by l.target_id ${order} limit $5
     ) l
     union all
     select l.id from unnest($8::integer[]) a, lateral (
       select s.id from links l
         join entities s on s.organization_id = $1 and s.stack_id = $3 and s.id = l.source_id
       where l.organization_id = $1 and l.target_id = $6 and l.attribute_id = a and l.source_id ${beyond} $4
       order by l.source_id ${order} limit $5
     ) l
   )`

/** $2: octets of a row, $3: stack of the entities wanted, $4: after this id, $5: how many, $6: whose, $7: attributes outgoing, $8: incoming. */
export const readRelatedAscendingSql = statement(
  'read_related_ascending',
  readRows(`where e.organization_id = $1 and e.stack_id = $3 and e.id in ${linked('>', 'asc')}
   order by e.id limit $5`),
)

/** As the ascending one, with $4: before this id. */
export const readRelatedDescendingSql = statement(
  'read_related_descending',
  readRows(`where e.organization_id = $1 and e.stack_id = $3 and e.id in ${linked('<', 'desc')}
   order by e.id desc limit $5`),
)

const found = (column: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = $3`

/** $2: stack, $3: identifier. The internal identifier of whoever bears it. */
export const findEntitySql = {
  id: statement('find_by_id', found('id')),
  external_id: statement('find_by_external_id', found('external_id')),
}
