import { announceCommit } from '../changes/commit-events.ts'
import { awaitPipelined, type Database, type Transaction } from '../db/db.ts'
import { nestedDatabase } from '../db/nested-transaction.ts'
import { perDatabase } from '../db/per-database.ts'
import { isConflict, isLockTimeout } from '../db/pg-errors.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import { Fault, refuse } from '../errors.ts'
import { FairPool } from '../fair-pool.ts'
import type { Signal } from '../signal.ts'
import { expiredBefore, otherRequestRefusal, type StoredResponse } from './kept-responses.ts'
import { claimKeySql, forgetKeySql, readKeySql, storeResponseSql } from './sql.ts'

/** A request with a key. `id` is the digest of caller, method, path and key. `request_sha256` is the digest of the request's content. */
export type KeyedRequest = { organization_id: number; id: Buffer; request_sha256: Buffer }

/**
 * The maximum number of concurrent writes with a key per organization. Each holds a connection, on which it may wait for a
 * locked row, and the organization's other writes need connections too. A higher limit would gain nothing, because all of them
 * wait for the head row of the organization.
 */
export const maxConcurrentKeyedWrites = 3
const keyedWrites = perDatabase(() => new FairPool({ share: maxConcurrentKeyedWrites }))

/** If the request that holds the key has not committed after this time, the response is 409 (still running). */
const claimTimeoutMs = 50

/**
 * Runs `work` once per key. One transaction claims the key, runs `work` with the database that it receives, and stores the response.
 * A key with a stored response returns that response, with `replayed`. An error of `work` rolls back everything, including the
 * key. Throws a Fault: 409 while the key's first request is running, 422 if the first request differed.
 */
export async function runIdempotent(
  db: Database,
  request: KeyedRequest,
  work: (db: Database) => Promise<StoredResponse>,
  signal: Signal,
): Promise<{ response: StoredResponse; replayed: boolean }> {
  const transact = () =>
    db.transaction(tx => claimAndWork(db, tx, request, work), { signal, lockTimeoutMs: claimTimeoutMs })
  const attempt = () => keyedWrites(db).run(request.organization_id, signal, transact)
  const result = await retryConflicts(attempt, isConflict, signal)
  if (!result.replayed) announceCommit(db, request.organization_id)
  return result
}

async function claimAndWork(
  db: Database,
  tx: Transaction,
  request: KeyedRequest,
  work: (db: Database) => Promise<StoredResponse>,
): Promise<{ response: StoredResponse; replayed: boolean }> {
  const stored = await claim(tx, request)
  if (stored) return { response: stored, replayed: true }
  const nested = nestedDatabase(db, tx)
  let response: StoredResponse
  try {
    response = await work(nested.db)
  } catch (error) {
    throw nested.broken() ?? error
  }
  // A part of the work was rolled back, even if the work ignored the error.
  if (nested.broken()) throw nested.broken()
  const { status, headers, body } = response
  const values = [request.organization_id, request.id, status, JSON.stringify(headers), body]
  await awaitPipelined([tx.query(storeResponseSql, values), tx.commit()])
  return { response, replayed: false }
}

type StoredKey = StoredResponse & { request_sha256: Buffer; expired: boolean }

/** Claims the key, or reads its stored response. */
async function claim(
  tx: Transaction,
  { organization_id, id, request_sha256 }: KeyedRequest,
): Promise<StoredResponse | undefined> {
  const now = Date.now()
  const at = new Date(now).toISOString()
  const before = expiredBefore(now)
  for (;;) {
    const claimed = await tx.query(claimKeySql, [organization_id, id, request_sha256, at]).catch(failIfRunning)
    if (claimed.length > 0) return undefined
    // A separate statement is needed: the snapshot of the claim does not include the row for which it waited.
    const [stored] = await tx.query<StoredKey>(readKeySql, [organization_id, id, before]).catch(failIfRunning)
    if (stored?.expired) await tx.query(forgetKeySql, [organization_id, id, before]).catch(failIfRunning)
    else if (stored) return responseForSameRequest(stored, request_sha256)
  }
}

function failIfRunning(error: unknown): never {
  if (!isLockTimeout(error)) throw error
  return refuse('invalid_parameter', 'A request with this Idempotency-Key is still running. Retry after 1 second.', {
    status: 409,
    headers: { 'Retry-After': '1' },
  })
}

function responseForSameRequest(
  { request_sha256: first, status, headers, body }: StoredKey,
  request_sha256: Buffer,
): StoredResponse {
  if (first.equals(request_sha256)) return { status, headers, body }
  throw new Fault(otherRequestRefusal)
}
