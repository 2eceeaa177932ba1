import { statement } from '../db/db.ts'

/**
 * $2: id, $3: name, $4: scope, $5: maker, $6: expiry, $7: client, $8: session, $9: the token that makes it, $10: role.
 * The last four may be null.
 */
export const insertTokenSql = statement(
  'insert_token',
  `insert into tokens (organization_id, id, name, scope, maker, expires_at, client_id, session_id, role, ancestors)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $10, coalesce(
     (select ancestors || id from tokens where organization_id = $1 and id = $9::uuid), array_remove(array[$9::uuid], null)))`,
)

/**
 * The names of the organization's callers that may currently appear in its log. `maker` is that of a token,
 * `account_id` that of an account or its session.
 */
export const readNamesInUseSql = statement(
  'read_names_in_use',
  `select name, maker, null::uuid as account_id from tokens where organization_id = $1 and revoked_at is null and expires_at > now()
   union all select name, null, account_id from sessions where organization_id = $1 and revoked_at is null and expires_at > now()
   union all select name, null, null from clients where organization_id = $1 and revoked_at is null and name <> ''
   union all select name, null, id from accounts where organization_id = $1`,
)

/**
 * $2: the token before the first one of the page, or null, $3: limit. Newest first. For an unknown token, the page is
 * empty.
 */
export const readTokenPageSql = statement(
  'read_token_page',
  `select t.id as jti, t.name, t.role, t.maker, t.created_at, t.expires_at, t.last_used_at, t.revoked_at,
     string_to_array(t.scope, ' ') as scopes
   from tokens t
   where t.organization_id = $1 and ($2::uuid is null or (t.created_at, t.id) < (
     select b.created_at, b.id from tokens b where b.organization_id = $1 and b.id = $2
   ))
   order by t.created_at desc, t.id desc limit $3`,
)

/** $1: organizations, $2: an id of each. Returns the tokens that are not revoked, see `findClientsSql`. */
export const findTokensSql = statement(
  'find_tokens',
  `select t.organization_id, t.id from unnest($1::integer[], $2::text[]) as v(organization_id, id)
   join tokens t on t.organization_id = v.organization_id + 0 and t.id = v.id::uuid
   where t.revoked_at is null`,
)

/** $2: id. Revokes the token and the tokens that were made with it, unless it was revoked before. */
export const revokeTokenSql = statement(
  'revoke_token',
  `update tokens set revoked_at = now()
   where organization_id = $1 and revoked_at is null and (id = $2 or $2 = any(ancestors))
     and exists (select from tokens t where t.organization_id = $1 and t.id = $2 and t.revoked_at is null)
   returning id`,
)

/** $1: organizations, $2: an id of each, $3: the minute of its last use. */
export const markTokensUsedSql = statement(
  'mark_tokens_used',
  `update tokens t set last_used_at = v.used_at
   from unnest($1::integer[], $2::text[], $3::timestamptz[]) as v(organization_id, id, used_at)
   where t.organization_id = v.organization_id + 0 and t.id = v.id::uuid
     and (t.last_used_at is null or t.last_used_at < v.used_at)`,
)

/** Deletes the expired tokens of all organizations. The list shows an expired token for 30 days. */
export const deleteExpiredTokensSql = statement(
  'delete_expired_tokens',
  "delete from tokens where expires_at <= now() - interval '30 days'",
)
