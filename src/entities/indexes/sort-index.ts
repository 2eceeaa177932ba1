import type { AttributeType } from '../../attribute-rules.ts'
import type { Database } from '../../db/db.ts'
import { createRefusal, Fault } from '../../errors.ts'
import { changeOrganization, ownAuthor } from '../../organizations/change-organization.ts'
import { type Definitions, reloadDefinitions, type SortIndex } from '../../organizations/definitions.ts'
import type { Signal } from '../../signal.ts'
import { type FillProgress, fillSortIndex } from './index-backfill.ts'
import { sortFieldOf } from './sort-field.ts'
import { announceSortIndexSql, createSortIndexSql } from './sort-index-sql.ts'

/** How long a request fills the index that it needs. The background fill continues. */
const fillMs = 3_000

const retryAfterSeconds = 2

/** The index that sorts the entities of a stack by a field, if these definitions have it and it is ready. */
export function readySortIndex({ sort_indexes }: Definitions, stack_id: number, field: string): SortIndex | undefined {
  const index = sort_indexes.get(stack_id)?.get(field)
  return index?.ready ? index : undefined
}

/**
 * Creates the index that sorts the entities of a stack by a field, if it does not exist, and fills it. From its creation on, writers
 * maintain it. A small stack is filled within the request. Returns the definitions after that, which lack the index if its attribute
 * cannot be sorted by any more. Throws a Fault of 503 with the progress if the stack is larger.
 */
export async function prepareSortIndex(
  db: Database,
  definitions: Definitions,
  { stack_id, field, type }: { stack_id: number; field: string; type: AttributeType },
  signal?: Signal,
): Promise<Definitions> {
  const { organization_id } = definitions
  const untilMs = performance.now() + fillMs
  const find = (current: Definitions) => current.sort_indexes.get(stack_id)?.get(field)
  let current = definitions
  if (!find(current)) {
    await createSortIndex(db, organization_id, stack_id, field, signal)
    current = await reloadDefinitions(db, organization_id, signal)
  }
  const index = find(current)
  if (!index || index.ready) return current
  const progress = await fillSortIndex(db, organization_id, index, type, { signal, untilMs })
  if (progress && !progress.ready) throw new Fault(buildFillingRefusal(field, progress))
  return reloadDefinitions(db, organization_id, signal)
}

function createSortIndex(
  db: Database,
  organization_id: number,
  stack_id: number,
  name: string,
  signal: Signal | undefined,
): Promise<unknown> {
  const field = sortFieldOf(name, stack_id)
  const key = field?.kind === 'attribute' ? field.key : null
  return changeOrganization({ db, organization_id }, { ...ownAuthor(), signal }, async ({ tx }) => ({
    statements: [
      tx.query(createSortIndexSql, [organization_id, stack_id, name, key]),
      tx.query(announceSortIndexSql, [organization_id, stack_id, name]),
    ],
    changes: [],
    result: undefined,
  }))
}

function buildFillingRefusal(field: string, { indexed, total }: Omit<FillProgress, 'ready'>) {
  const done = Math.min(indexed, total)
  return createRefusal(
    'operation_failed',
    `The index that sorts by ${field} is being built: ${done} of about ${total} entities are done. Retry after ${retryAfterSeconds} seconds.`,
    { status: 503, headers: { 'Retry-After': String(retryAfterSeconds) } },
  )
}
