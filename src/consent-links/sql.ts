import { statement } from '../db/db.ts'

/** The key that signs new links: the newest. */
export const readNewestLinkKeySql = statement(
  'read_newest_link_key',
  'select k.id, k.secret from link_keys k where k.organization_id = $1 order by k.id desc limit 1',
)

/** $2: the id of the key. Returns no row for a deleted organization, which an old link may still name. */
export const readLinkKeySql = statement(
  'read_link_key',
  `select k.id, k.secret from link_keys k join organizations o on o.id = $1 and o.deleted_at is null
   where k.organization_id = $1 and k.id = $2`,
)

/** Inserts the first key, $2. Concurrent requests store only one. */
export const insertFirstLinkKeySql = statement(
  'insert_first_link_key',
  `insert into link_keys (organization_id, id, secret, created_at) values ($1, 1, $2, now())
   on conflict (organization_id, id) do nothing`,
)
