import { statement } from '../db/db.ts'

/** $1: organization, $2: SHA-256 of the code, $3: name, $4: scope, $5: lifetime in seconds. */
export const insertSignInCodeSql = statement(
  'insert_sign_in_code',
  `insert into sign_in_codes (organization_id, code_sha256, name, scope, expires_at)
   values ($1, $2, $3, $4, now() + $5 * interval '1 second')`,
)

/** $1: organization, $2: SHA-256 of the code. The row lock allows only one of several requests to delete the code. */
export const useSignInCodeSql = statement(
  'use_sign_in_code',
  `delete from sign_in_codes where organization_id = $1 and code_sha256 = $2 and expires_at > now()
   returning name, scope`,
)

/**
 * $1: organization, $2: id, $3: SHA-256 of the token, $4: name, $5: scope, $6: method, $7: client, $8: account, $9:
 * lifetime in seconds, $10: role.
 */
export const insertSessionSql = statement(
  'insert_session',
  `insert into sessions (organization_id, id, token_sha256, name, scope, method, client_id, account_id, expires_at, role)
   values ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9 * interval '1 second', $10)
   returning id, name, scope, role, method, account_id, expires_at`,
)

/** $2: the look-alike form of a name. */
export const findAccountNameSql = statement(
  'find_account_name',
  'select id from accounts where organization_id = $1 and name_key = $2',
)

/** A session is live until it expires, or until it or its client is revoked. */
const isLiveIn = (organization: string) =>
  `s.revoked_at is null and s.expires_at > now() and (s.client_id is null or exists (
     select from clients c where c.organization_id = ${organization} and c.id = s.client_id and c.revoked_at is null offset 0))`
const isLive = isLiveIn('$1')

/** $1: organization, $2: SHA-256 of the token. */
export const readSessionSql = statement(
  'read_session',
  `select s.id, s.name, s.scope, s.role, s.method, s.account_id, s.expires_at, ${isLive} as is_live
   from sessions s where s.organization_id = $1 and s.token_sha256 = $2`,
)

/** $1: organizations, $2: the id of a session in each. Returns the live ones, see `findClientsSql`. */
export const findLiveSessionsSql = statement(
  'find_live_sessions',
  `select s.organization_id, s.id from unnest($1::integer[], $2::text[]) as v(organization_id, id)
   join sessions s on s.organization_id = v.organization_id + 0 and s.id = v.id::uuid where ${isLiveIn('s.organization_id')}`,
)

/** $1: organization, $2: the maximum. The live sessions, newest first. */
export const listSessionsSql = statement(
  'list_sessions',
  `select s.id, s.name, s.role, s.method, s.client_id, s.account_id, s.created_at, s.expires_at,
     string_to_array(s.scope, ' ') as scopes
   from sessions s where s.organization_id = $1 and ${isLive} order by s.created_at desc, s.id limit $2`,
)

/** $1: organization, $2: id. */
export const revokeSessionSql = statement(
  'revoke_session',
  `update sessions set revoked_at = now()
   where organization_id = $1 and id = $2 and revoked_at is null and expires_at > now() returning id`,
)

/** Deletes the expired sessions of all organizations. */
export const deleteExpiredSessionsSql = statement(
  'delete_expired_sessions',
  'delete from sessions where expires_at <= now()',
)

/** Deletes the expired codes of all organizations. */
export const deleteExpiredCodesSql = statement(
  'delete_expired_codes',
  'delete from sign_in_codes where expires_at <= now()',
)
