import { awaitPipelined, type Transaction } from '../db/db.ts'
import type { DefinitionDiff } from './definition-dry-run.ts'
import { appendDefinitionChangesSql, numberChangesSql, numberDefinitionChangesSql } from './definitions-sql.ts'

/** The author and the time of the changes: RFC 3339. `changesDefinitions` increments the version of the definitions with each entry. */
type Context = {
  organization_id: number
  at: string
  actor: string
  request_id: string
  changesDefinitions: boolean
}

/** Appends entries to the change log, in their order. The head must be locked. */
export function appendChanges(tx: Transaction, context: Context, changes: readonly DefinitionDiff[]): Promise<void> {
  const { organization_id, at, actor, request_id, changesDefinitions } = context
  const logged = changes.map(({ subject, id: definition_id, operation, before, after }, index) => ({
    n: index + 1,
    ...{ subject, definition_id, operation, before, after },
  }))
  return awaitPipelined([
    tx.query(changesDefinitions ? numberDefinitionChangesSql : numberChangesSql, [organization_id, changes.length, at]),
    tx.query(appendDefinitionChangesSql, [organization_id, JSON.stringify(logged), at, actor, request_id]),
  ])
}
