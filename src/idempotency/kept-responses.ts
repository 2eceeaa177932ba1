import type { Within } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { deleteInSteps } from '../db/delete-in-steps.ts'
import type { Signal } from '../process/signal.ts'
import type { RequestKey, StoredResponse } from '../route/call.ts'
import { createRefusal, type Refusal } from '../values/errors.ts'
import {
  forgetExpiredKeysSql,
  forgetKeysSql,
  insertKeys,
  listOrganizationsWithExpiredKeysSql,
  readKeysSql,
} from './sql.ts'

const retentionMs = 24 * 60 * 60 * 1_000

/** The time before which keys have expired. */
export const expiredBefore = (nowMs = Date.now()): string => new Date(nowMs - retentionMs).toISOString()

/** The key of a write. `batch_id` is the key of its batch. */
export type WriteKey = RequestKey & { batch_id?: string }

/** A stored response with its key. An expired response is not replayed. */
export type StoredKey = RequestKey & StoredResponse & { expired: boolean }

export type StoredKeys = ReadonlyMap<string, StoredKey>

/**
 * Reads the responses stored under the keys and under those of their batches. The transaction has locked the head, so
 * no other transaction of kith stores a response meanwhile.
 */
export async function readKeys({ tx, organization_id }: Within, keys: readonly WriteKey[]): Promise<StoredKeys> {
  if (keys.length === 0) return noKeys
  const ids = new Set(keys.flatMap(({ id, batch_id }) => (batch_id === undefined ? id : [id, batch_id])))
  const stored = await tx.query<StoredKey>(readKeysSql, [organization_id, [...ids], expiredBefore()])
  return new Map(stored.map(key => [key.id, key]))
}

const noKeys: StoredKeys = new Map()

/**
 * The response of the first request with the key, or the refusal because another request has it. Undefined if the key
 * is free.
 */
export function answerOf(
  { id, request_sha256, batch_id }: WriteKey,
  keys: StoredKeys,
): { replayed: StoredResponse } | { refusal: Refusal } | undefined {
  const batch = batch_id === undefined ? undefined : keys.get(batch_id)
  if (batch && !batch.expired && batch.request_sha256 !== request_sha256) return { refusal: otherRequestRefusal }
  const stored = keys.get(id)
  if (!stored || stored.expired) return undefined
  const { status, headers, body } = stored
  return stored.request_sha256 === request_sha256
    ? { replayed: { status, headers, body } }
    : { refusal: otherRequestRefusal }
}

/** The refusal of a key that belongs to another request. */
export const otherRequestRefusal: Refusal = createRefusal(
  'invalid_parameter',
  'This Idempotency-Key was already used for a different request. Use a new key.',
  { status: 422 },
)

/** Stores responses under their keys, and the keys of their batches. Returns a promise for each statement. */
export function keepResponses(
  { tx, organization_id }: Within,
  responses: readonly (WriteKey & StoredResponse)[],
  { keys, at }: { keys: StoredKeys; at: string },
): Promise<unknown>[] {
  if (responses.length === 0) return []
  const batches = new Map<string, RequestKey & StoredResponse>()
  for (const { batch_id: id, request_sha256 } of responses)
    if (id !== undefined && (keys.get(id)?.expired ?? true))
      batches.set(id, { id, request_sha256, status: 200, headers: {}, body: '' })
  const kept = [...responses, ...batches.values()]
  const expired = kept.map(({ id }) => id).filter(id => keys.get(id)?.expired)
  return [
    ...(expired.length > 0 ? [tx.query(forgetExpiredKeysSql, [organization_id, expired, expiredBefore()])] : []),
    tx.append(
      insertKeys,
      kept.map(({ id, request_sha256, status, headers, body }) => ({
        organization_id,
        id: `\\x${id}`,
        request_sha256: `\\x${request_sha256}`,
        at,
        status,
        headers,
        body,
      })),
    ),
  ]
}

const keysPerDeletion = 1_000

/** Deletes the keys that are older than 24 hours, in small transactions. Returns the number of deleted keys. */
export async function forgetKeys(db: Database, { signal }: { signal?: Signal } = {}): Promise<number> {
  const before = expiredBefore()
  let forgotten = 0
  const organizations = await db.query<{ organization_id: number }>(listOrganizationsWithExpiredKeysSql, [before])
  for (const { organization_id } of organizations)
    forgotten += await deleteInSteps(db, forgetKeysSql, [organization_id, before, keysPerDeletion], {
      limit: keysPerDeletion,
      signal,
    })
  return forgotten
}
