import type { Context } from '../../db/context.ts'
import type { RowsOfPage } from '../../entities/read/entity-reader.ts'
import type { Position } from '../../entities/read/pagination.ts'
import { parseSortMeasure } from '../grammar/parse.ts'
import { isMeasured } from '../grammar/sort.ts'
import { type FilterNotes, type FilterOptions, underDefinitions } from '../plan/reading.ts'
import type { SortBody } from '../schema.ts'
import { readIdPage } from './id-page.ts'
import { readMeasuredPage } from './measured-page.ts'
import { readSortedPage } from './sorted-page.ts'

/** A page of the entities of a stack that satisfy a filter, in order of their ids or of `sort`. */
export type PageRequest = {
  stack_id: number
  filter: unknown
  sort?: SortBody | undefined
  position: Position
  /** Whether to count all matches, at the moment of the first statement. */
  isCounted?: boolean | undefined
}

export type FilteredPage = RowsOfPage & { notes: FilterNotes }

/**
 * Reads a page under the current definitions. Throws the Faults of `parseFilter`, a Fault of 400 if the field of `sort`
 * cannot sort, and a conflict if the definitions change during every attempt.
 */
export function readFilteredPage(
  context: Context,
  request: PageRequest,
  options: FilterOptions = {},
): Promise<FilteredPage> {
  const { sort, position, stack_id, filter } = request
  return underDefinitions(context, { stack_id, filter, ...options }, async reading => {
    const { parsed, notes } = await reading.parseFilter()
    const selection = { ...request, condition: parsed.condition }
    const { definitions } = reading
    if (!sort) return { ...(await readIdPage(reading, selection)), notes, definitions }
    const sorted = { ...selection, position: { ...position, direction: sort.direction ?? 'asc' } }
    if (!isMeasured(sort))
      return { ...(await readSortedPage(reading, sort, sorted, options.signal)), notes, definitions }
    const measure = await reading.parse(() => parseSortMeasure(sort, definitions, stack_id, options))
    const page = await readMeasuredPage(reading, sorted, measure.parsed.condition)
    return { ...page, notes: joined(notes, measure.notes), definitions }
  })
}

const joined = (one: FilterNotes, other: FilterNotes): FilterNotes => ({
  unusedKeys: [...one.unusedKeys, ...other.unusedKeys],
  evaluated_at: one.evaluated_at ?? other.evaluated_at,
})
