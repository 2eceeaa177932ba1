import { type SortField, timeColumns } from '../../entities/indexes/sort-field.ts'
import { attributePart, textPart, timeTerm } from '../../entities/indexes/sort-index-sql.ts'
import { noValueTerm } from '../../entities/indexes/sort-terms.ts'
import type { SortIndex } from '../../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../../values/profile-fields.ts'
import { always, constant, type Fragment, type Parameter, sql } from '../plan/fragment.ts'

/** A place in the order of a sort index. */
export type SortKey = { term: string; id: string }

/** The part of an entity e that its sort term depends on. */
export function sortedPart(field: SortField): Fragment {
  if (field.kind === 'attribute')
    return sql`(select ${attributeParts} from (select e.attributes->${field.key}::text as v offset 0) a)`
  return partsOfColumns[field.column]!
}

const attributeParts = constant(attributePart('a.v'))
const partsOfColumns: Readonly<Record<string, Fragment>> = Object.fromEntries([
  ...['external_id', ...profileTexts].map(column => [column, constant(textPart(`e.${column}`))]),
  ...profileFlags.map(column => [column, constant(`e.${column}`)]),
  ...timeColumns.map(column => [column, constant(timeTerm(`e.${column}`))]),
])

const nil = '00000000-0000-0000-0000-000000000000'
const greatest = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The next `count` keys of an index, with their numbers `n` in its order. */
export const keysOf = (direction: 'asc' | 'desc') => (direction === 'asc' ? keysAscending : keysDescending)

function keysAscending(
  organization: Parameter,
  { id: index_id }: SortIndex,
  after: SortKey | undefined,
  count: number,
) {
  const { term, id } = after ?? { term: '', id: nil }
  return sql`select t.value, t.entity_id, row_number() over (order by t.value, t.entity_id) as n from (
      select t.value, t.entity_id from terms t
      where t.organization_id = ${organization} and t.index_id = ${index_id}::integer
        and (t.value, t.entity_id) > (${term}::text, ${id}::uuid)
      order by t.value, t.entity_id limit ${count}::integer
    ) t`
}

/** The order of terms t, and whether one is after a key. */
export function orderOfTerms(
  direction: 'asc' | 'desc',
  after: SortKey | undefined,
): [order: Fragment, isAfter: Fragment] {
  const isMissing = sql`t.value = ${noValueTerm}::text`
  const order = direction === 'asc' ? sql`t.value, t.entity_id` : sql`${isMissing}, t.value desc, t.entity_id desc`
  if (!after) return [order, always]
  const key = sql`(${after.term}::text, ${after.id}::uuid)`
  if (direction === 'asc') return [order, sql`(t.value, t.entity_id) > ${key}`]
  const isBefore = sql`(t.value, t.entity_id) < ${key}`
  return [order, after.term >= noValueTerm ? sql`(${isMissing} and ${isBefore})` : sql`(${isMissing} or ${isBefore})`]
}

/** Descending, entities without a value come last as well, so the keys are those of two ranges. */
function keysDescending(
  organization: Parameter,
  { id: index_id }: SortIndex,
  after: SortKey | undefined,
  count: number,
) {
  const isPastValues = after !== undefined && after.term >= noValueTerm
  const present = isPastValues ? { term: '', id: nil } : (after ?? { term: noValueTerm, id: nil })
  const own = sql`t.organization_id = ${organization} and t.index_id = ${index_id}::integer`
  return sql`select t.value, t.entity_id, row_number() over (order by t.is_missing, t.value desc, t.entity_id desc) as n from (
      with present as materialized (
        select t.value, t.entity_id from terms t
        where ${own} and (t.value, t.entity_id) < (${present.term}::text, ${present.id}::uuid)
        order by t.value desc, t.entity_id desc limit ${count}::integer
      ), missing as materialized (
        select t.value, t.entity_id from terms t
        where ${own} and t.value = ${noValueTerm}::text and t.entity_id < ${isPastValues ? after.id : greatest}::uuid
        order by t.entity_id desc limit greatest(${count}::integer - (select count(*) from present), 0)
      )
      select p.value, p.entity_id, false as is_missing from present p
      union all select m.value, m.entity_id, true from missing m
    ) t`
}
