import { statement } from '../db/db.ts'

/** Newest first: that one signs. */
export const read_signing_keys = statement(
  'read_signing_keys',
  'select kid, algorithm, public_jwk, private_jwk from signing_keys order by created_at desc, kid',
)

/** Held to the commit: of servers that start together one makes the key, the others read it. Readers do not wait. */
export const lock_signing_keys = statement('lock_signing_keys', 'lock table signing_keys in share row exclusive mode')

export const insert_signing_key = statement(
  'insert_signing_key',
  'insert into signing_keys (kid, algorithm, public_jwk, private_jwk) values ($1, $2, $3::jsonb, $4::jsonb)',
)
