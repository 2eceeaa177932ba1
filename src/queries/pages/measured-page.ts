import { statement } from '../../db/db.ts'
import { type Count, type Position, sizeToRead } from '../../entities/read/pagination.ts'
import { pointer, throwBrokenRule } from '../../values/errors.ts'
import { isDate } from '../../values/formats.ts'
import { compileCondition, compileMeasure } from '../plan/compile.ts'
import { type CompiledCondition, countUpTo, distinctCandidates } from '../plan/condition.ts'
import { always, type Fragment, sql } from '../plan/fragment.ts'
import type { LinkMeasured } from '../plan/linked.ts'
import type { Reading } from '../plan/reading.ts'
import { countLinked, hashSettings, maxFewCandidates } from './count.ts'
import type { Selection } from './id-page.ts'
import { type ShownRows, shownRows } from './shown-rows.ts'
import type { SortedPage } from './sorted-page.ts'

/** Enables PostgreSQL's default, which looks up the links of few candidates. */
const loopSettings = statement('', `select set_config('enable_nestloop', 'on', true)`)

/**
 * Reads a page in the order of a measure of the linking entities. The statement computes the measure for all matches.
 */
export async function readMeasuredPage(
  reading: Reading,
  { condition, stack_id, position, isCounted }: Selection,
  measured: LinkMeasured,
): Promise<SortedPage> {
  const { definitions } = reading
  const shown = shownRows(definitions, stack_id, position)
  const ofOne = compileCondition(condition, definitions, stack_id, shown.organization)
  const after = placeAfter(position, measured)
  const isFew = await giveFew(reading, ofOne, shown)
  const [best] = ofOne.candidates
  const { organization, own, row } = shown
  // The measure is computed for few candidates, or for the whole stack.
  const measures = compileMeasure(measured, definitions, stack_id, organization)
  const valueOfAll = measured.measured.op === '$count' ? sql`coalesce(m.v, 0)` : sql`m.v`
  const values =
    isFew && best
      ? sql`select e.id, m.v from (${distinctCandidates(best)}) c
          cross join lateral (select e.id from entities e where ${own} and e.id = c.id and ${best.rest} offset 0) e
          cross join lateral (select ${measures.ofOne} as v) m`
      : sql`select e.id, ${valueOfAll} as v from entities e left join (${measures.ofAll}) m on m.id = e.id
          where ${own} and ${ofOne.check}`
  const [order, isAfter] = orderOf(measured, position.direction, after)
  const statement = sql`select string_agg(${shown.shown}, E'\\n' order by x.n) as rows,
      (array_agg(x.term order by x.n))[least(${position.size}::integer, count(*)::integer)] as last_term
    from (
      select k.n, e.id, e.row, coalesce('=' || k.v::text, '') as term
      from (
        select v.id, v.v, row_number() over (order by ${order}) as n from (${values}) v
        where ${isAfter} order by ${order} limit ${sizeToRead(position)}::integer
      ) k cross join lateral (
        select e.id, ${row} from entities e where ${own} and e.id = k.id offset 0
      ) e
    ) x`
  const page = { ...shown.render(statement), settings: isFew ? loopSettings : hashSettings }
  const count = () =>
    countLinked(ofOne, compileCondition(condition, definitions, stack_id, organization, true).check, shown)
  const [[found], [counted] = []] = (await reading.runPlanned(page, ...(isCounted ? [count()] : []))) as [
    [Row],
    Count[]?,
  ]
  return { rows: found.rows ?? '', last_term: found.last_term ?? undefined, counted }
}

/** Whether the best index gives few candidates. */
async function giveFew(
  reading: Reading,
  { candidates: [best] }: CompiledCondition,
  { schemaVersion, renderPlain }: ShownRows,
) {
  if (!best) return false
  const statement = sql`select n.count, ${schemaVersion} as schema_version from (${countUpTo(best, maxFewCandidates)}) n`
  const [{ count }] = await reading.run<{ count: number; schema_version: number }>(renderPlain(statement))
  return count <= maxFewCandidates
}

type Row = { rows: string | null; last_term: string | null }

/** A position in the order of a measure. The value is null for an entity without one. */
type Place = { value: string | null; id: string }

/**
 * Returns the position of a cursor, whose term is empty or a value after `=`. Throws a Fault of 400 for a value that
 * the measure cannot have.
 */
function placeAfter({ after_id, after_term }: Position, { measured }: LinkMeasured): Place | undefined {
  if (after_id === undefined || after_term === undefined) return undefined
  if (after_term === '') return { value: null, id: after_id }
  const value = after_term.slice(1)
  const isValue = isOfDates(measured) ? isDate(value) : /^-?\d{1,1000}(\.\d{1,1000})?$/.test(value)
  if (after_term.startsWith('=') && isValue) return { value, id: after_id }
  return throwBrokenRule(pointer('cursor_configuration', 'cursor'), 'must be the `next_cursor` of a page')
}

/** Whether the values are texts of dates. All others are numbers, and a time is its seconds since 1970. */
const isOfDates = (measured: LinkMeasured['measured']) => measured.op !== '$count' && measured.type === 'date'

/** The order of rows v, with entities without a value last, and the condition that a row is after a position. */
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
