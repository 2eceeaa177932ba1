import type { Static } from 'typebox'
import { OutcomeUnknown } from '../db/pg-errors.ts'
import { cachedDefinitions, type Definitions, ownerOf } from '../organizations/definitions.ts'
import type { ImportOutcome } from '../process/observer.ts'
import type { Call } from '../route/call.ts'
import { type HandlerResult, listPage } from '../route/result.ts'
import { refuse } from '../values/errors.ts'
import type { ImportsQuery, listedImport } from './imports-schema.ts'
import { beginImportSql, endImportSql, listImportsSql } from './sql.ts'

/** The counts of an import's lines. */
export type LineCounts = { received: number } & Record<ImportOutcome, number>

/** Records the end of an import. The change log up to `sequence` includes all lines. */
export type EndImport = (counts: LineCounts, sequence: number) => Promise<void>

/**
 * Records the start of an import, so that it can be undone even if the service is killed. Its id is that of its
 * request. Throws a Fault of 409 if another import has the id. The returned function records the end, once.
 */
export async function beginImport(
  { context, caller, request_id, signal }: Pick<Call, 'context' | 'caller' | 'request_id' | 'signal'>,
  stack_id: number,
): Promise<EndImport> {
  const { db, organization_id } = context
  const values = [organization_id, request_id, stack_id, caller.subject, new Date().toISOString()]
  // If the standby does not confirm the record, the lines fail in the same way, which the client sees.
  const begun = await db.query(beginImportSql, values, signal).catch(error => {
    if (error instanceof OutcomeUnknown) return [{}]
    throw error
  })
  if (begun.length === 0) refuse('invalid_parameter', takenMessage, { status: 409 })
  let ended: Promise<void> | undefined
  return ({ received, created, updated, unchanged, failed }, sequence) => {
    const counts = [received, created, updated, unchanged, failed]
    ended ??= db
      .query(endImportSql, [organization_id, request_id, new Date().toISOString(), sequence, ...counts])
      .then(() => {})
    return ended
  }
}

const takenMessage = 'Another import has this request id. Send another X-Request-Id.'

type ImportRow = Omit<Static<typeof listedImport>, 'owner'> & { stack_id: number }

const defaultLimit = 50

export async function listImports({ context, body, signal }: Call<ImportsQuery>): Promise<HandlerResult> {
  const { before = null, limit = defaultLimit } = body
  const { db, organization_id } = context
  const rows = await db.query<ImportRow>(listImportsSql, [organization_id, before, limit + 1], signal)
  const definitions = await cachedDefinitions(context, signal)
  return { status: 200, data: listPage(rows, limit, row => withOwner(row, definitions)) }
}

/** A row as in a read: with the key of its stack, or `people`. */
export function withOwner<Row extends { id: string; stack_id: number }>(
  { id, stack_id, ...row }: Row,
  definitions: Definitions,
) {
  return { id, owner: ownerOf(definitions, stack_id), ...row }
}
