import type { ReadEntity } from '../entities/entity-row.ts'
import { type Position, sizeToRead } from '../entities/read/pagination.ts'
import { pointer, refuse } from '../errors.ts'
import { isDate } from '../formats.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { compileCondition, compileMeasure } from './compile.ts'
import { allCandidates, allIndexes, countCandidatesUpTo, type IndexCandidates } from './condition.ts'
import { always, constant, type Fragment, render, sql } from './fragment.ts'
import type { Condition } from './grammar.ts'
import type { LinkMeasured } from './linked.ts'
import type { FilterNotes, FilterOptions, Reading } from './page.ts'
import { parseSortMeasure } from './parse.ts'
import type { MeasuredSortBody } from './schema.ts'
import {
  hashSettings,
  leadingParameters,
  maxSortedCandidates,
  type Query,
  rowOfProjection,
  type SortedEntity,
} from './select.ts'

/** Reads a page in the order of a measure of the entities that link to those of the page. The measure is computed for all matches. */
export async function readMeasuredPage(
  reading: Reading,
  stack_id: number,
  sort: MeasuredSortBody,
  position: Position,
  { boundFrom, nowMs }: FilterOptions,
): Promise<{ reads: SortedEntity[]; has_more: boolean } & FilterNotes> {
  const { definitions } = reading
  const { parsed, notes } = await reading.parseFilter()
  const measure = await reading.parse(() => parseSortMeasure(sort, definitions, stack_id, { boundFrom, nowMs }))
  const after = placeAfter(position, measure.parsed.condition)
  const selection = {
    condition: parsed.condition,
    measured: measure.parsed.condition,
    definitions,
    stack_id,
    position,
    after,
  }
  const statements = measuredStatements(selection)
  const found = await reading.run<SortedEntity>(statements.page(await findFewCandidates(reading, statements)))
  return {
    reads: found.slice(0, position.size),
    has_more: found.length > position.size,
    unusedKeys: [...notes.unusedKeys, ...measure.notes.unusedKeys],
    evaluated_at: notes.evaluated_at ?? measure.notes.evaluated_at,
  }
}

/** The candidates of the first index that gives few. Undefined if none does. */
async function findFewCandidates(reading: Reading, { indexes, countCandidates }: MeasuredStatements) {
  for (const index of indexes) {
    const [counted] = await reading.run<{ count: number }>(countCandidates(index))
    if (counted!.count <= maxSortedCandidates) return index
  }
}

/** A place in the order of a measure. The value is null for entities without one. */
type Place = { value: string | null; id: string }

/** The place that a cursor names: its term is a value after `=`, or empty. Throws a Fault of 400 for a value that the measure cannot have. */
function placeAfter({ after_id, after_term }: Position, { measured }: LinkMeasured): Place | undefined {
  if (after_id === undefined || after_term === undefined) return undefined
  if (after_term === '') return { value: null, id: after_id }
  const value = after_term.slice(1)
  const isValue = isOfDates(measured) ? isDate(value) : /^-?\d{1,1000}(\.\d{1,1000})?$/.test(value)
  if (after_term.startsWith('=') && isValue) return { value, id: after_id }
  return refuse('invalid_parameter', 'The request breaks a rule.', {
    details: [{ path: pointer('cursor_configuration', 'cursor'), message: 'must be the `next_cursor` of a page' }],
  })
}

/** Whether the values are texts of dates. All others are numbers: a time is the seconds since 1970. */
const isOfDates = (measured: LinkMeasured['measured']) => measured.op !== '$count' && measured.type === 'date'

type MeasuredSelection = {
  condition: Condition
  measured: LinkMeasured
  definitions: Definitions
  stack_id: number
  position: Position
  after: Place | undefined
}

type MeasuredStatements = {
  /** The indexes that give candidates. */
  indexes: readonly IndexCandidates[]
  /** Counts the candidates of an index, up to one more than {@link maxSortedCandidates}. */
  countCandidates(index: IndexCandidates): Query
  /** Reads the first entities after the place, as rows of {@link ReadEntity} with their `term`. The measure is that of the candidates, or of all. */
  page(candidates: IndexCandidates | undefined): Query
}

function measuredStatements(selection: MeasuredSelection): MeasuredStatements {
  const { condition, measured, definitions, stack_id, position, after } = selection
  const leading = leadingParameters(definitions, stack_id, position)
  const [organization, maxRowBytes, stack] = leading
  const { check, indexCandidates } = compileCondition(condition, definitions, stack_id, organization)
  const { ofOne, ofAll } = compileMeasure(measured, definitions, stack_id, organization)
  const { row, parameters } = rowOfProjection(position, definitions, stack_id)
  const own = sql`e.organization_id = ${organization} and e.stack_id = ${stack}::integer`
  const countCandidates = (index: IndexCandidates) =>
    render(countCandidatesUpTo(index, maxSortedCandidates), [organization])
  const measuredRows = (candidates: IndexCandidates | undefined) => {
    if (candidates)
      return sql`select e.id, m.v from (select distinct i.id from (${allCandidates(candidates)}) i(id)) c
        cross join lateral (select e.id from entities e where ${own} and e.id = c.id and ${check} offset 0) e
        cross join lateral (select ${ofOne} as v) m`
    const value = measured.measured.op === '$count' ? sql`coalesce(m.v, 0)` : sql`m.v`
    return sql`select e.id, ${value} as v from entities e left join (${ofAll}) m on m.id = e.id where ${own} and ${check}`
  }
  const [order, isAfter] = orderOf(measured, position.direction, after)
  const page = (candidates: IndexCandidates | undefined): Query => {
    const query = render(
      sql`select x.id, coalesce('=' || k.v::text, '') as term,
          case when octet_length(x.row) <= ${maxRowBytes}::integer then x.row end as row,
          (select h.schema_version from change_heads h where h.organization_id = ${organization}) as schema_version
        from (
          select v.id, v.v, row_number() over (order by ${order}) as n from (${measuredRows(candidates)}) v
          where ${isAfter} order by ${order} limit ${sizeToRead(position)}::integer
        ) k cross join lateral (
          select e.id, ${constant(row)} from entities e where ${own} and e.id = k.id offset 0
        ) x order by k.n`,
      [...leading, ...parameters],
    )
    return candidates ? query : { ...query, settings: hashSettings }
  }
  return { indexes: allIndexes(indexCandidates), countCandidates, page }
}

/** The order of rows v, entities without a value last, and whether a row is after a place. */
function orderOf(
  { measured }: LinkMeasured,
  direction: 'asc' | 'desc',
  after: Place | undefined,
): [order: Fragment, isAfter: Fragment] {
  const isAscending = direction === 'asc'
  const order = isAscending ? sql`v.v, v.id` : sql`v.v desc nulls last, v.id desc`
  if (!after) return [order, always]
  const sign = isAscending ? sql`>` : sql`<`
  const isBehind = sql`v.id ${sign} ${after.id}::uuid`
  if (after.value === null) return [order, sql`v.v is null and ${isBehind}`]
  const value = isOfDates(measured) ? sql`(${after.value}::text collate "C")` : sql`${after.value}::numeric`
  return [order, sql`(v.v is null or v.v ${sign} ${value} or (v.v = ${value} and ${isBehind}))`]
}
