import { statement } from '../db/db.ts'

/** Only the signing key has a private half, because a rotation deletes those of older keys. */
const signs = 'private_jwk is not null'

/** The signing key and the keys whose tokens may still be valid, newest first. */
export const readVerifyingKeysSql = statement(
  'read_verifying_keys',
  `select kid, algorithm, public_jwk from signing_keys
   where ${signs} or vouches_until > now() order by created_at desc, kid`,
)

/** $1: Unix time in seconds. `suffices`: the key verifies tokens at least until then. */
export const readSigningKeySql = statement(
  'read_signing_key',
  `select kid, algorithm, private_jwk, vouches_until >= to_timestamp($1) as suffices
   from signing_keys where ${signs} order by created_at desc, kid limit 1`,
)

/** $1: kid, $2: Unix time in seconds. */
export const extendSigningKeySql = statement(
  'extend_signing_key',
  'update signing_keys set vouches_until = to_timestamp($2) where kid = $1 and vouches_until < to_timestamp($2)',
)

/**
 * Locks the table until the commit, so that only one of several starting servers creates the key. Readers do not wait.
 */
export const lockSigningKeysSql = statement('lock_signing_keys', 'lock table signing_keys in share row exclusive mode')

/** Inserts a key that has signed nothing yet. */
export const insertSigningKeySql = statement(
  'insert_signing_key',
  `insert into signing_keys (kid, algorithm, public_jwk, private_jwk, vouches_until)
   values ($1, $2, $3::jsonb, $4::jsonb, now())`,
)

/** $1: the kid of the newest key. */
export const deleteOlderPrivateKeysSql = statement(
  'silence_older_keys',
  `update signing_keys set private_jwk = null where kid <> $1 and ${signs}`,
)

export const deleteExpiredKeysSql = statement(
  'delete_dead_keys',
  'delete from signing_keys where private_jwk is null and vouches_until <= now()',
)

export const listSigningKeysSql = statement(
  'list_signing_keys',
  `select kid, algorithm, created_at,
     case when ${signs} then 'signs' when vouches_until > now() then 'verifies' else 'expired' end as state,
     case when private_jwk is null then vouches_until end as verifies_until
   from signing_keys order by created_at desc, kid`,
)

export const deleteVerifyingKeySql = statement(
  'delete_verifying_key',
  'delete from signing_keys where kid = $1 and private_jwk is null returning kid',
)

/** A client without its secret. */
const shownClient = `id as client_id, name, string_to_array(scope, ' ') as scopes, role, created_at, revoked_at`

/** $1: organization, $2: id, $3: name, $4: scope, $5: SHA-256 of the secret, $6: role. */
export const insertClientSql = statement(
  'insert_client',
  `insert into clients (organization_id, id, name, scope, secret_sha256, role) values ($1, $2, $3, $4, $5, $6)
   returning ${shownClient}`,
)

/** $2: id. Reads a client, revoked or not. */
export const findClientSql = statement(
  'find_client',
  `select ${shownClient} from clients where organization_id = $1 and id = $2`,
)

/**
 * $2: the client before the first one of the page, or null, $3: limit. Newest first. For an unknown client, the page is
 * empty.
 */
export const readClientPageSql = statement(
  'read_client_page',
  `select ${shownClient} from clients c
   where c.organization_id = $1 and ($2::text is null or (c.created_at, c.id) < (
     select b.created_at, b.id from clients b where b.organization_id = $1 and b.id = $2
   ))
   order by c.created_at desc, c.id desc limit $3`,
)

/** Reads a client that is not revoked. */
export const readClientSql = statement(
  'read_client',
  'select name, scope, role, secret_sha256 from clients where organization_id = $1 and id = $2 and revoked_at is null',
)

/**
 * $1: organizations, $2: an id of each. Returns the clients that are not revoked. Citus treats a column of unnest as
 * text unless the statement computes with it.
 */
export const findClientsSql = statement(
  'find_clients',
  `select c.organization_id, c.id from unnest($1::integer[], $2::text[]) as v(organization_id, id)
   join clients c on c.organization_id = v.organization_id + 0 and c.id = v.id || ''
   where c.revoked_at is null`,
)

export const revokeClientSql = statement(
  'revoke_client',
  'update clients set revoked_at = now() where organization_id = $1 and id = $2 and revoked_at is null returning id',
)
