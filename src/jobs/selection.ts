import type { Context } from '../db/context.ts'
import { projectionOf } from '../entities/read/projection.ts'
import type { Condition } from '../queries/grammar/grammar.ts'
import type { UndeclaredKey } from '../queries/grammar/parse.ts'
import { readIdPage } from '../queries/pages/id-page.ts'
import { type FilterOptions, underDefinitions } from '../queries/plan/reading.ts'

/**
 * The entities of a stack that a filter selects among those that existed at a time. Relative times count from it too.
 */
export type Selection = { stack_id: number; filter: object; started_at: string }

type Place = { after: string | null; size: number }

export async function readSelected(
  context: Context,
  { stack_id, filter, started_at }: Selection,
  { after, size }: Place,
  options: FilterOptions,
): Promise<string[]> {
  const existed: Condition = {
    kind: 'field',
    field: { kind: 'time', column: 'created_at' },
    tests: [{ operator: '$lte', operand: started_at }],
  }
  const { ids } = await readIds(context, { stack_id, filter, existed, after, size }, options)
  return ids.slice(0, size)
}

/**
 * Counts the entities that a filter selects, and finds the keys that it probably misspells. Throws the Faults of the
 * filter and of `options.authorize`.
 */
export async function countSelected(
  context: Context,
  selection: Pick<Selection, 'stack_id' | 'filter'>,
  options: FilterOptions,
): Promise<{ total: number; unusedKeys: UndeclaredKey[] }> {
  const page = { ...selection, after: null, size: 1, isCounted: true } as const
  const { count, unusedKeys } = await readIds(context, page, options)
  return { total: count!, unusedKeys }
}

type Request = Pick<Selection, 'stack_id' | 'filter'> & Place & { existed?: Condition; isCounted?: true }

function readIds(
  context: Context,
  { stack_id, filter, existed, after, size, isCounted }: Request,
  options: FilterOptions,
): Promise<{ ids: string[]; count: number | undefined; unusedKeys: UndeclaredKey[] }> {
  // A row of more than 0 bytes is reduced to its identifier.
  const projection = projectionOf(['external_id'], stack_id)
  const position = { direction: 'asc' as const, after_id: after ?? undefined, size, maxRowBytes: 0, projection }
  return underDefinitions(context, { stack_id, filter, ...options }, async reading => {
    const { parsed, notes } = await reading.parseFilter()
    const condition: Condition = existed ? { kind: 'all', conditions: [parsed.condition, existed] } : parsed.condition
    const { rows, counted } = await readIdPage(reading, { condition, stack_id, position, isCounted })
    return { ids: rows === '' ? [] : rows.split('\n'), count: counted?.count, unusedKeys: notes.unusedKeys }
  })
}
