import { statement } from '../../db/db.ts'
import { type ProjectionParameters, readRows, rowWithin } from './read-sql.ts'

// The index holds each attribute's links in order of the other end's id, so a page is equally fast for many links and
// for few. A target may be deleted, so the query looks it up before the limit. Otherwise pages could be short. The fence (`offset 0`)
// leaves PostgreSQL only the look-up. A source exists as long as its links, which are deleted with it.
const linked = (comparison: string, order: string) => `(
     select l.id from unnest($7::integer[]) a, lateral (
       select t.id from links l cross join lateral (
         select t.id from entities t where t.organization_id = $1 and t.stack_id = $3 and t.id = l.target_id offset 0
       ) t
       where l.organization_id = $1 and l.source_id = $6 and l.attribute_id = a and l.target_id ${comparison} $4
       order by l.target_id ${order} limit $5
     ) l
     union all
     select l.id from unnest($8::integer[]) a, lateral (
       select l.source_id as id from links l
       where l.organization_id = $1 and l.target_id = $6 and l.attribute_id = a and l.source_id ${comparison} $4
       order by l.source_id ${order} limit $5
     ) l
   )`

// The array and the order as text leave PostgreSQL only the look-up of these rows. As a join it read the stack in order: 15,000
// rows for a page of 50 among 20,000 people.
const related = (comparison: string, order: string, projection?: ProjectionParameters) =>
  readRows(
    `where e.organization_id = $1 and e.stack_id = $3
     and e.id = any(array(select distinct x.id from ${linked(comparison, order)} x order by x.id ${order} limit $5))
   order by e.id::text collate "C" ${order}`,
    rowWithin('$2', projection),
  )

/**
 * $2: maximum bytes of a row, $3: stack of the related entities, $4: after this id (descending: before it), $5: limit, $6: the
 * entity, $7: attributes of outgoing links, $8: attributes of incoming links.
 */
export const readRelatedSql = {
  asc: statement('read_related_ascending', related('>', 'asc')),
  desc: statement('read_related_descending', related('<', 'desc')),
}

const projection = { stack: '$3', mask: '$9', keys: '$10' }

/** Parameters as for {@link readRelatedSql}, and a projection: $9: mask, $10: keys. */
export const readProjectedRelatedSql = {
  asc: statement('read_projected_related_ascending', related('>', 'asc', projection)),
  desc: statement('read_projected_related_descending', related('<', 'desc', projection)),
}

/**
 * $2: stack of the related entities, $3: the entity, $4: attributes of outgoing links, $5: attributes of incoming links. Counts the
 * related entities, each once, with the number of the last change that the count includes. The links by one attribute have a source each,
 * so the index alone counts very many.
 */
export const countRelatedSql = statement(
  'count_related',
  `select case when cardinality($4::integer[]) = 0 and cardinality($5::integer[]) = 1 then (
     select count(*) from links l where l.organization_id = $1 and l.target_id = $3 and l.attribute_id = $5[1]
   ) else (
     select count(*) from (
       select t.id from links l cross join lateral (
         select t.id from entities t where t.organization_id = $1 and t.stack_id = $2 and t.id = l.target_id offset 0
       ) t
       where l.organization_id = $1 and l.source_id = $3 and l.attribute_id = any($4::integer[])
       union
       select l.source_id from links l
       where l.organization_id = $1 and l.target_id = $3 and l.attribute_id = any($5::integer[])
     ) x
   ) end as count, h.sequence
   from change_heads h where h.organization_id = $1`,
)

const findBy = (column: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = $3`

/** $2: stack, $3: identifier. Returns the internal identifier of the entity. */
export const findEntitySql = {
  id: statement('find_by_id', findBy('id')),
  external_id: statement('find_by_external_id', findBy('external_id')),
}
