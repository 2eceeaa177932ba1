import { randomUUID } from 'node:crypto'
import { announceCommit } from '../db/commit-events.ts'
import type { Context, Within } from '../db/context.ts'
import { awaitPipelined, type Transaction } from '../db/db.ts'
import { isConflict } from '../db/pg-errors.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import type { Signal } from '../process/signal.ts'
import { cachedDefinitions, type Definitions } from './definitions.ts'
import { appendDefinitionChangesSql, numberChangesSql } from './definitions-sql.ts'
import { type Head, lockHead, standingDefinitions } from './head.ts'
import type { Operation, Subject } from './logged-changes.ts'

/** The author of a change, as the change log and the consent history name them. */
export type Author = { actor: string; request_id: string }

/** The author of changes that the service makes on its own. */
export const ownAuthor = (): Author => ({ actor: 'kith', request_id: randomUUID() })

/** The subjects of the change log other than people and records. */
export type DefinitionSubject = Exclude<Subject, 'person' | 'record'>

export const definitionOperations = ['create', 'update', 'delete'] as const satisfies Operation[]

/** An entry of the change log that is not about an entity. */
export type DefinitionDiff = {
  subject: DefinitionSubject
  id: number
  operation: (typeof definitionOperations)[number]
  before: object
  after: object
}

/**
 * Receives the effects of a change. The change log up to `sequence` includes the change, see `Written` of the route
 * table. `changes` are the entries that a dry run would log.
 */
type Report = { sequence: number; changes?: readonly object[] }

export type ChangeCall = Author & {
  signal?: Signal | undefined
  /** True for a dry run: the transaction does the same and is rolled back. */
  isDryRun?: boolean
  written?: Report
  /** The maximum wait for the head, in milliseconds. */
  lockTimeoutMs?: number
}

/** The state that the work sees. The lock of the head keeps it current until the transaction ends. */
export type Locked = Within & { head: Head; definitions: Definitions; at: string }

/** The decision of the work: the statements and log entries of the change, and its result. */
export type Changed<Result> = {
  /** Statements that were sent and store the change. */
  statements?: readonly Promise<unknown>[]
  /**
   * The entries of the log. If empty, the change is not announced. If undefined, the work has logged it, or the log
   * does not contain it.
   */
  changes?: readonly DefinitionDiff[]
  /** Whether the version of the definitions rises with each entry. */
  changesDefinitions?: boolean
  /** The number of the last change, if the work has logged it. */
  sequence?: number
  /** The result, or a read of it that sees the change. */
  result: Result | (() => Promise<Result>)
}

/**
 * Changes an organization: locks the head, lets `work` decide and store, logs, commits and announces. The head and the
 * definitions that `work` receives stay current until the end. After a conflict, `work` runs again, so it must not
 * depend on an earlier run. If `work` throws, this throws the same error and stores nothing.
 */
export async function changeOrganization<Result>(
  context: Context,
  call: ChangeCall,
  work: (locked: Locked) => Promise<Changed<Result>>,
): Promise<Result> {
  const { actor, request_id, signal, isDryRun = false, written, lockTimeoutMs } = call
  const { db, organization_id } = context
  const cached = await cachedDefinitions(context, signal)
  const transact = () =>
    db.transaction(
      async tx => {
        const head = await lockHead({ tx, organization_id })
        const at = new Date().toISOString()
        const definitions = await standingDefinitions(tx, head, cached)
        const changed = await work({ tx, organization_id, head, definitions, at })
        const { statements = [], changes = [], changesDefinitions = false, result } = changed
        const entry = { organization_id, at, actor, request_id, changesDefinitions }
        const storing = [...statements, ...(changes.length > 0 ? appendChanges(tx, entry, changes) : [])]
        const isRead = typeof result === 'function'
        const reading = isRead ? (result as () => Promise<Result>)() : result
        const ending = isDryRun ? tx.rollback : tx.commit
        await awaitPipelined([...storing, Promise.resolve(reading), ...(isRead ? [] : [ending()])])
        if (isRead) await ending()
        return { head, changed, result: await reading }
      },
      { signal, lockTimeoutMs, readsFirst: true },
    )
  // A nested transaction is retried together with the outer one.
  const { head, changed, result } = await (db.outer ? transact() : retryConflicts(transact, isConflict, signal))
  const { changes } = changed
  if (isDryRun) {
    if (written && changes) written.changes = changes
    return result
  }
  const sequence = changed.sequence ?? (changes && head.sequence + changes.length)
  if (written && sequence !== undefined) written.sequence = sequence
  if (changes?.length !== 0) announceCommit(context)
  return result
}

type LogContext = Author & { organization_id: number; at: string; changesDefinitions: boolean }

function appendChanges(tx: Transaction, context: LogContext, changes: readonly DefinitionDiff[]): Promise<unknown>[] {
  const { organization_id, at, actor, request_id, changesDefinitions } = context
  const logged = changes.map(({ subject, id: definition_id, operation, before, after }, index) => ({
    n: index + 1,
    ...{ subject, definition_id, operation, before, after },
  }))
  return [
    tx.query(numberChangesSql, [organization_id, changes.length, at, changesDefinitions ? changes.length : 0]),
    tx.query(appendDefinitionChangesSql, [organization_id, JSON.stringify(logged), at, actor, request_id]),
  ]
}
