import { statement } from '../db/db.ts'

const shown = `id, name, role,
  case when disabled_at is not null then 'disabled' when password_hash is null then 'invited' else 'active' end as state,
  maker, created_at, last_sign_in_at, invitation_expires_at`

/** $2: maximum. Newest first. */
export const listAccountsSql = statement(
  'list_accounts',
  `select ${shown} from accounts where organization_id = $1 order by created_at desc, id limit $2`,
)

/** $2: id. */
export const readAccountSql = statement(
  'read_account',
  `select ${shown} from accounts where organization_id = $1 and id = $2`,
)

/**
 * $2: id, $3: name, $4: the key that look-alike names share, $5: role, $6: maker, $7: SHA-256 of the code of the
 * invitation, $8: its lifetime in seconds.
 */
export const insertAccountSql = statement(
  'insert_account',
  `insert into accounts (organization_id, id, name, name_key, role, maker, invitation_sha256, invitation_expires_at)
   values ($1, $2, $3, $4, $5, $6, $7, now() + $8 * interval '1 second') returning ${shown}`,
)

/** $2: id, $3: SHA-256 of the code, $4: lifetime in seconds. Replaces an earlier invitation. */
export const inviteAccountSql = statement(
  'invite_account',
  `update accounts set invitation_sha256 = $3, invitation_expires_at = now() + $4 * interval '1 second'
   where organization_id = $1 and id = $2 returning ${shown}`,
)

/** $2: id, $3: role, $4: the time at which it is disabled, or null, $5: whether its invitation stays. */
export const updateAccountSql = statement(
  'update_account',
  `update accounts set role = $3, disabled_at = case when $4::timestamptz is not null then coalesce(disabled_at, $4) end,
     invitation_sha256 = case when $5 then invitation_sha256 end,
     invitation_expires_at = case when $5 then invitation_expires_at end
   where organization_id = $1 and id = $2 returning ${shown}`,
)

export const deleteAccountSql = statement(
  'delete_account',
  'delete from accounts where organization_id = $1 and id = $2 returning id',
)

/** $2: account, $3: a session that stays, or null. */
export const endAccountSessionsSql = statement(
  'end_account_sessions',
  `update sessions set revoked_at = now()
   where organization_id = $1 and account_id = $2 and revoked_at is null and id is distinct from $3`,
)

/** $2: the key that look-alike names share. */
export const readPasswordByNameSql = statement(
  'read_password_by_name',
  'select id, name, password_hash from accounts where organization_id = $1 and name_key = $2 and disabled_at is null',
)

/** $2: id. */
export const readPasswordSql = statement(
  'read_password',
  'select id, name, password_hash from accounts where organization_id = $1 and id = $2 and disabled_at is null',
)

/**
 * $2: id, $3: the hash that matched. Because of the row lock, a change of the account waits for the session, and then
 * ends it.
 */
export const signInAccountSql = statement(
  'sign_in_account',
  `update accounts set last_sign_in_at = now()
   where organization_id = $1 and id = $2 and password_hash = $3 and disabled_at is null returning id, name, role`,
)

/** $2: id, $3: the hash that matched, $4: the new hash. */
export const changePasswordSql = statement(
  'change_password',
  `update accounts set password_hash = $4
   where organization_id = $1 and id = $2 and password_hash = $3 and disabled_at is null returning id`,
)

const isOpen = 'invitation_sha256 = $2 and invitation_expires_at > now() and disabled_at is null'

/** $2: SHA-256 of the code. */
export const readInvitationSql = statement(
  'read_invitation',
  `select id, name, invitation_expires_at as expires_at from accounts where organization_id = $1 and ${isOpen}`,
)

/**
 * $2: SHA-256 of the code, $3: hash of the password. With the row lock, one of several concurrent requests accepts it.
 */
export const acceptInvitationSql = statement(
  'accept_invitation',
  `update accounts set password_hash = $3, invitation_sha256 = null, invitation_expires_at = null, last_sign_in_at = now()
   where organization_id = $1 and ${isOpen} returning id, name, role`,
)
