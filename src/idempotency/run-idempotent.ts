import { type Database, flushed, type Transaction } from '../db/db.ts'
import { keyedSemaphore } from '../db/keyed-semaphore.ts'
import { nestedDatabase } from '../db/nested-transaction.ts'
import { isDeadlock, isLockTimeout } from '../db/pg-errors.ts'
import { conflictFault, maxAttempts, pauseAfter } from '../db/retry-policy.ts'
import { fail } from '../errors.ts'
import type { Signal } from '../signal.ts'
import { claimKeySql, forgetKeySql, keepAnswerSql, readKeySql } from './sql.ts'

/** A key is kept for this long. */
export const retentionMs = 24 * 60 * 60 * 1_000

/** An answer as it is kept: `body` is JSON text, of the data or of the refusal. */
export type StoredResponse = { status: number; headers: Record<string, string>; body: string }

/** A request under a key: `id` is the digest of who asks where under which key, `request_sha256` of what is asked. */
export type KeyedRequest = { organization_id: number; id: Buffer; request_sha256: Buffer }

/**
 * So many connections the writes under keys of an organization take at a time. Each has one to itself and may wait in it for a
 * row that is locked elsewhere; the organization's other writes shall find one, too. More would gain nothing: they wait for one head.
 */
export const turnsAtOnce = 3
const inTurn = keyedSemaphore<number>(turnsAtOnce)

/** Whoever has taken the key and has not committed after this long is told of as still running. */
const claimTimeoutMs = 50

/**
 * Does `work` once for each key: claims the key, works through the database it is given, and keeps the answer, all in one
 * transaction. A key that has its answer is answered by it, `replayed`. What `work` throws undoes everything, the key
 * included. Throws a Fault: 409 while the key's first request is running, 422 when it asked for something else.
 */
export async function runIdempotent(
  db: Database,
  request: KeyedRequest,
  work: (db: Database) => Promise<StoredResponse>,
  signal: Signal,
): Promise<{ kept: StoredResponse; replayed: boolean }> {
  const options = { signal, lockTimeoutMs: claimTimeoutMs }
  for (let attempt = 1; ; attempt += 1) {
    try {
      const transact = () => db.transaction(tx => claimAndWork(db, tx, request, work), options)
      return await inTurn(db, request.organization_id, signal, transact)
    } catch (error) {
      if (signal.aborted || !isDeadlock(error)) throw error
      if (attempt >= maxAttempts) throw conflictFault(error)
      await pauseAfter(attempt, signal)
    }
  }
}

async function claimAndWork(
  db: Database,
  tx: Transaction,
  request: KeyedRequest,
  work: (db: Database) => Promise<StoredResponse>,
): Promise<{ kept: StoredResponse; replayed: boolean }> {
  const standing = await claim(tx, request)
  if (standing) return { kept: standing, replayed: true }
  const joined = nestedDatabase(db, tx)
  let kept: StoredResponse
  try {
    kept = await work(joined.db)
  } catch (error) {
    throw joined.broken() ?? error
  }
  // Part of the work is undone, whatever it has made of that.
  if (joined.broken()) throw joined.broken()
  const { status, headers, body } = kept
  const values = [request.organization_id, request.id, status, JSON.stringify(headers), body]
  await flushed([tx.query(keepAnswerSql, values), tx.commit()])
  return { kept, replayed: false }
}

type Standing = StoredResponse & { request_sha256: Buffer; expired: boolean }

/** Takes the key, or reads the answer that it has. */
async function claim(
  tx: Transaction,
  { organization_id, id, request_sha256 }: KeyedRequest,
): Promise<StoredResponse | undefined> {
  const now = Date.now()
  const at = new Date(now).toISOString()
  const forgotten = new Date(now - retentionMs).toISOString()
  for (;;) {
    const claimed = await tx.query(claimKeySql, [organization_id, id, request_sha256, at]).catch(refuseRunning)
    if (claimed.length > 0) return undefined
    // In a statement of its own: that of the claim does not see what it has waited for.
    const [standing] = await tx.query<Standing>(readKeySql, [organization_id, id, forgotten]).catch(refuseRunning)
    if (standing?.expired) await tx.query(forgetKeySql, [organization_id, id, forgotten]).catch(refuseRunning)
    else if (standing) return sameRequest(standing, request_sha256)
  }
}

function refuseRunning(error: unknown): never {
  if (!isLockTimeout(error)) throw error
  return fail('invalid_parameter', 'A request with this Idempotency-Key is still running.', {
    status: 409,
    headers: { 'Retry-After': '1' },
  })
}

function sameRequest(
  { request_sha256: first, status, headers, body }: Standing,
  request_sha256: Buffer,
): StoredResponse {
  if (first.equals(request_sha256)) return { status, headers, body }
  return fail('invalid_parameter', 'The Idempotency-Key was used with another body.', { status: 422 })
}
