import type { Context } from '../../db/context.ts'
import { shape } from '../../db/db.ts'
import type { RowsOfPage } from '../../entities/read/entity-reader.ts'
import { type Count, type PositionToRead, sizeToRead, startOf } from '../../entities/read/pagination.ts'
import { type Definitions, definitionsAt } from '../../organizations/definitions.ts'
import type { Signal } from '../../process/signal.ts'
import { type Fragment, type Parameter, sql } from '../plan/fragment.ts'
import { countMembers, countOf } from './count.ts'
import { shownRows } from './shown-rows.ts'

/**
 * A query for the entities of one stack that are linked with the entity `id`. `outgoing` and `incoming` are the ids of
 * the relationship attributes in each direction.
 */
type RelatedQuery = { id: string; stack_id: number; outgoing: number[]; incoming: number[] }

/** Reads a page of the entities linked with one entity, each once, in order of id. */
export async function readRelatedPage(
  context: Context,
  definitions: Definitions,
  query: RelatedQuery,
  { isCounted, ...position }: PositionToRead,
  signal?: Signal,
): Promise<RowsOfPage> {
  const shown = shownRows(definitions, query.stack_id, position)
  const { order } = shown
  const isAfter = (id: Fragment) => shown.isAfter(id, startOf(position))
  const linked = linkedIds(query, shown, { order, isAfter, limit: sizeToRead(position) })
  const counting = isCounted ? countMembers(countLinks(query, shown), shown.organization) : sql``
  const page = shown.page(shown.ofMatching, sql`${shown.schemaVersion} as schema_version${counting}`, order)
  const { text, values } = shown.render(sql`with matching as materialized (${linked}) ${page}`)
  type Row = { rows: string | null; schema_version: number } & Partial<Count>
  const [row] = (await context.db.query<Row>(shape(text), values, signal)) as [Row]
  return {
    rows: row.rows ?? '',
    counted: countOf(row),
    definitions: await definitionsAt(context, row.schema_version, signal),
  }
}

type Order = { order: Fragment; isAfter: (id: Fragment) => Fragment; limit: number }
type OwnRows = { organization: Parameter; own: Fragment }

// The index holds each attribute's links in order of the other end's id, so a page is equally fast for many links and
// for few. The target may be deleted, so it is looked up before the limit, and no page is short. The source exists as
// long as its links, which are deleted with it.
function linkedIds(
  { id, outgoing, incoming }: RelatedQuery,
  { organization, own }: OwnRows,
  { order, isAfter, limit }: Order,
): Fragment {
  return sql`select distinct x.id from (
      select l.id from unnest(${outgoing}::integer[]) a, lateral (
        select e.id from links l cross join lateral (
          select e.id from entities e where ${own} and e.id = l.target_id offset 0
        ) e
        where l.organization_id = ${organization} and l.source_id = ${id}::uuid and l.attribute_id = a and ${isAfter(sql`l.target_id`)}
        order by l.target_id ${order} limit ${limit}::integer
      ) l
      union all
      select l.id from unnest(${incoming}::integer[]) a, lateral (
        select l.source_id as id from links l
        where l.organization_id = ${organization} and l.target_id = ${id}::uuid and l.attribute_id = a and ${isAfter(sql`l.source_id`)}
        order by l.source_id ${order} limit ${limit}::integer
      ) l
    ) x order by x.id ${order} limit ${limit}::integer`
}

/**
 * Counts the related entities. All links of one attribute have different sources, so the index alone counts very many.
 */
function countLinks({ id, outgoing, incoming }: RelatedQuery, { organization, own }: OwnRows): Fragment {
  const toEntity = sql`from links l where l.organization_id = ${organization} and l.target_id = ${id}::uuid`
  if (outgoing.length === 0 && incoming.length === 1)
    return sql`(select count(*) ${toEntity} and l.attribute_id = ${incoming[0]}::integer)`
  return sql`(select count(*) from (
      select e.id from links l cross join lateral (
        select e.id from entities e where ${own} and e.id = l.target_id offset 0
      ) e
      where l.organization_id = ${organization} and l.source_id = ${id}::uuid and l.attribute_id = any(${outgoing}::integer[])
      union
      select l.source_id ${toEntity} and l.attribute_id = any(${incoming}::integer[])
    ) x)`
}
