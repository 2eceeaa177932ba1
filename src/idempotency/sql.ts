import { copyInto } from '../db/copy.ts'
import { statement } from '../db/db.ts'

/**
 * $2: id, $3: the request's digest, $4: the time, $5: the time before which keys have expired. Returns a row if the key
 * was free. Waits for a transaction that is claiming it.
 */
export const claimKeySql = statement(
  'claim_key',
  `insert into idempotency_keys (organization_id, id, request_sha256, at) values ($1, $2, $3, $4)
   on conflict (organization_id, id) do update
     set request_sha256 = excluded.request_sha256, at = excluded.at, status = null, headers = null, body = null
     where idempotency_keys.at < $5
   returning 1`,
)

/**
 * $2: id. The lock makes the transaction a writing one. So its COMMIT waits for a synchronous standby, which may not
 * have the first response yet.
 */
export const readKeySql = statement(
  'read_key',
  `select request_sha256, status, headers, body from idempotency_keys where organization_id = $1 and id = $2 for share`,
)

/** $2: id, $3: status, $4: headers, $5: body. */
export const storeResponseSql = statement(
  'keep_answer',
  'update idempotency_keys set status = $3, headers = $4, body = $5 where organization_id = $1 and id = $2',
)

/** $2: ids in hexadecimal, $3: the time before which keys have expired. Returns the rows of the keys. */
export const readKeysSql = statement(
  'read_keys',
  `select encode(id, 'hex') as id, encode(request_sha256, 'hex') as request_sha256, at < $3 as expired, status, headers, body
   from idempotency_keys where organization_id = $1 and id = any(select decode(v, 'hex') from unnest($2::text[]) v)`,
)

/** $2: ids in hexadecimal, $3: the time before which keys have expired. */
export const forgetExpiredKeysSql = statement(
  'forget_expired_keys',
  `delete from idempotency_keys
   where organization_id = $1 and at < $3 and id = any(select decode(v, 'hex') from unnest($2::text[]) v)`,
)

/** Appends responses to free keys. Fails if a key already has one. */
export const insertKeys = copyInto('insert_keys', 'idempotency_keys', [
  ...['organization_id', 'id', 'request_sha256', 'at', 'status', 'headers', 'body'],
])

/** $1: the time before which keys have expired. The organizations with expired keys, found in the index of each. */
export const listOrganizationsWithExpiredKeysSql = statement(
  'list_organizations_with_expired_keys',
  `select h.organization_id from change_heads h
   where exists (select from idempotency_keys k where k.organization_id = h.organization_id and k.at < $1)`,
)

/** $2: the time before which keys have expired, $3: the maximum number of keys. Returns the number of deleted keys. */
export const forgetKeysSql = statement(
  'forget_keys',
  `with old as materialized (
     select id from idempotency_keys where organization_id = $1 and at < $2 limit $3
   ), gone as (
     delete from idempotency_keys k using old o where k.organization_id = $1 and k.id = o.id and k.at < $2 returning 1
   ) select count(*)::integer as count from gone`,
)
