import { statement } from '../db/db.ts'
import { readRows } from './read-sql.ts'

// The index holds each attribute's links in order of the other end's id, so a page is equally fast for many links and
// for few. A link may dangle, so the query joins the entity before the limit. Otherwise pages could be short.
const linked = (comparison: string, order: string) => `(
     select l.id from unnest($7::integer[]) a, lateral (
       select t.id from links l
         join entities t on t.organization_id = $1 and t.stack_id = $3 and t.id = l.target_id
       where l.organization_id = $1 and l.source_id = $6 and l.attribute_id = a and l.target_id ${comparison} $4
       order by l.target_id ${order} limit $5
     ) l
     union all
     select l.id from unnest($8::integer[]) a, lateral (
       select s.id from links l
         join entities s on s.organization_id = $1 and s.stack_id = $3 and s.id = l.source_id
       where l.organization_id = $1 and l.target_id = $6 and l.attribute_id = a and l.source_id ${comparison} $4
       order by l.source_id ${order} limit $5
     ) l
   )`

/**
 * $2: maximum bytes of a row, $3: stack of the related entities, $4: after this id, $5: limit, $6: the entity, $7:
 * attributes of outgoing links, $8: attributes of incoming links.
 */
export const readRelatedAscendingSql = statement(
  'read_related_ascending',
  readRows(`where e.organization_id = $1 and e.stack_id = $3 and e.id in ${linked('>', 'asc')}
   order by e.id limit $5`),
)

/** Parameters as for {@link readRelatedAscendingSql}, but $4: before this id. */
export const readRelatedDescendingSql = statement(
  'read_related_descending',
  readRows(`where e.organization_id = $1 and e.stack_id = $3 and e.id in ${linked('<', 'desc')}
   order by e.id desc limit $5`),
)

const findBy = (column: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = $3`

/** $2: stack, $3: identifier. Returns the internal identifier of the entity. */
export const findEntitySql = {
  id: statement('find_by_id', findBy('id')),
  external_id: statement('find_by_external_id', findBy('external_id')),
}
