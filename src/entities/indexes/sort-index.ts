import type { Context } from '../../db/context.ts'
import { isLockTimeout } from '../../db/pg-errors.ts'
import { changeOrganization, ownAuthor } from '../../organizations/change-organization.ts'
import type { Signal } from '../../process/signal.ts'
import { sortFieldOf } from './sort-field.ts'
import { announceSortIndexSql, createSortIndexSql } from './sort-index-sql.ts'

/**
 * The maximum time that a request waits for the head, in milliseconds. Its page is sorted from the rows, so it need not
 * create the index.
 */
const lockTimeoutMs = 250

/**
 * Creates the index that sorts the entities of a stack by a field, if it does not exist and the field's attribute is
 * indexed. Writers maintain it from then on, and a background task fills it. If a write locks the organization for
 * longer than `lockTimeoutMs`, no index is created.
 */
export async function beginSortIndex(context: Context, stack_id: number, name: string, signal?: Signal): Promise<void> {
  const field = sortFieldOf(name, stack_id)
  const key = field?.kind === 'attribute' ? field.key : null
  const call = { ...ownAuthor(), signal, lockTimeoutMs }
  await changeOrganization<void>(context, call, async ({ tx, organization_id }) => ({
    statements: [
      tx.query(createSortIndexSql, [organization_id, stack_id, name, key]),
      tx.query(announceSortIndexSql, [organization_id, stack_id, name]),
    ],
    changes: [],
    result: undefined,
  })).catch(error => {
    if (!isLockTimeout(error)) throw error
  })
}
