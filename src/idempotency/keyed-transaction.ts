import { announceCommit } from '../db/commit-events.ts'
import { type Context, contextOf, type Within } from '../db/context.ts'
import { awaitPipelined, type Database, statement, type Transaction } from '../db/db.ts'
import { perDatabase } from '../db/per-database.ts'
import { isConflict, isLockTimeout } from '../db/pg-errors.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import { FairPool } from '../process/fair-pool.ts'
import type { Signal } from '../process/signal.ts'
import type { StoredResponse } from '../route/call.ts'
import { Fault, refuse } from '../values/errors.ts'
import { expiredBefore, otherRequestRefusal } from './kept-responses.ts'
import { claimKeySql, readKeySql, storeResponseSql } from './sql.ts'

/**
 * A request with a key. `id` is the digest of caller, method, path and key. `request_sha256` is the digest of the
 * request's content.
 */
export type KeyedRequest = { id: Buffer; request_sha256: Buffer }

/**
 * The maximum number of concurrent transactions with a key per organization. Each holds a connection, on which it may
 * wait for a locked row, and the organization's other writes need connections too. A higher limit would gain nothing,
 * because all of them wait for the head row of the organization.
 */
export const maxConcurrentKeyedWrites = 3
const keyedWrites = perDatabase(() => new FairPool({ share: maxConcurrentKeyedWrites }))

/** If the request that holds the key has not committed after this time, the response is 409 (still running). */
const claimTimeoutMs = 50
/**
 * Only the claim has this limit. Citus propagates this command to the workers, where the locks are, but not a
 * set_config() in a SELECT.
 */
const waitForLocksSql = statement('', 'set local lock_timeout = 0')
const beginWorkSql = statement('', 'savepoint work')
const undoWorkSql = statement('', 'rollback to savepoint work')

/**
 * Runs `work` once per key. One transaction claims the key, runs `work` and stores the response. It includes all
 * statements of the database that `work` receives. A refusal undoes the changes of `work` and is stored. An error of
 * `work` rolls back everything, including the key. A key with a stored response returns that response, with `replayed`.
 * Throws a Fault: 409 while the key's first request is running, 422 if the first request differed.
 */
export async function keyedTransaction(
  context: Context,
  request: KeyedRequest,
  work: (context: Context) => Promise<StoredResponse>,
  signal: Signal,
): Promise<{ response: StoredResponse; replayed: boolean }> {
  const { db, organization_id } = context
  const { id } = request
  const run = async (tx: Transaction) => {
    const stored = await claim({ tx, organization_id }, request)
    if (stored) return { response: stored, replayed: true }
    await awaitPipelined([tx.query(waitForLocksSql, []), tx.query(beginWorkSql, [])])
    const response = await workWithin(context, tx, work)
    const { status, headers, body } = response
    const values = [organization_id, id, status, JSON.stringify(headers), body]
    const undoing = status >= 400 ? [tx.query(undoWorkSql, [])] : []
    await awaitPipelined([...undoing, tx.query(storeResponseSql, values), tx.commit()])
    return { response, replayed: false }
  }
  const transact = () => db.transaction(run, { signal, lockTimeoutMs: claimTimeoutMs })
  const attempt = () => keyedWrites(db).run(organization_id, signal, transact)
  const result = await retryConflicts(attempt, isConflict, signal)
  if (!result.replayed) announceCommit(context)
  return result
}

/**
 * Runs the work on a database whose transactions are all `tx`. The first statement that fails makes the transaction
 * fail.
 */
async function workWithin(
  { db, organization_id }: Context,
  tx: Transaction,
  work: (context: Context) => Promise<StoredResponse>,
): Promise<StoredResponse> {
  let failure: unknown
  const noteFailure = (error: unknown) => {
    failure ??= error
    throw error
  }
  const query: Transaction['query'] = (statement, values) => tx.query(statement, values).catch(noteFailure) as never
  const append: Transaction['append'] = (into, rows) => tx.append(into, rows).catch(noteFailure)
  const nothing = async () => {}
  const within: Database = {
    outer: db,
    observer: db.observer,
    masterKeys: db.masterKeys,
    connect: db.connect,
    close: nothing,
    query,
    transaction: part => part({ query, append, commit: nothing, rollback: nothing }),
  }
  const response = await work(contextOf(within, organization_id)).catch(error => {
    // A retry of work within the failed transaction fails because of the first failure.
    throw error instanceof Fault && !isConflict(failure) ? error : (failure ?? error)
  })
  if (isConflict(failure) || (failure && response.status < 400)) throw failure
  return response
}

type StoredKey = StoredResponse & { request_sha256: Buffer }

async function claim(
  { tx, organization_id }: Within,
  { id, request_sha256 }: KeyedRequest,
): Promise<StoredResponse | undefined> {
  const now = Date.now()
  const claiming = [organization_id, id, request_sha256, new Date(now).toISOString(), expiredBefore(now)]
  for (;;) {
    const claimed = await tx.query(claimKeySql, claiming).catch(failIfRunning)
    if (claimed.length > 0) return undefined
    // A separate statement is needed, because the snapshot of the claim does not include the row for which it waited.
    const [stored] = await tx.query<StoredKey>(readKeySql, [organization_id, id]).catch(failIfRunning)
    if (!stored) continue
    const { request_sha256: first, status, headers, body } = stored
    if (!first.equals(request_sha256)) throw new Fault(otherRequestRefusal)
    return { status, headers, body }
  }
}

function failIfRunning(error: unknown): never {
  if (!isLockTimeout(error)) throw error
  return refuse('invalid_parameter', 'A request with this Idempotency-Key is still running. Retry after 1 second.', {
    status: 409,
    headers: { 'Retry-After': '1' },
  })
}
